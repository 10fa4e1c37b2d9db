"""``cndpm list`` and ``cndpm data``, end to end."""

import pytest

from cndpm.datasets import dataset_names
from cndpm.experiments.learners import LEARNERS
from cndpm.paper import EXPERIMENTS
from cndpm.streams import scenario_names

NAMES = {
    "scenarios": scenario_names(),
    "learners": tuple(LEARNERS),
    "datasets": dataset_names(),
    "experiments": tuple(EXPERIMENTS),
    "presets": ("default", "paper", "fast"),
}


def test_list_gives_every_name_with_a_line(cndpm):
    listed = cndpm("list", "--json").json
    assert {kind: tuple(one["name"] for one in entries) for kind, entries in listed.items()} == NAMES
    assert all(one["summary"] for entries in listed.values() for one in entries)


@pytest.mark.parametrize("kind", NAMES)
def test_list_prints_one_kind_for_people(cndpm, kind):
    outcome = cndpm("list", kind)
    assert outcome.code == 0
    assert all(name in outcome.out for name in NAMES[kind])


def test_list_of_an_unknown_kind_is_answered_with_the_nearest(cndpm):
    outcome = cndpm("list", "learner")
    assert outcome.code == 2
    assert "learners" in outcome.err


def test_data_status_says_what_is_there_and_where(cndpm, mnist_dir):
    found = {
        one["name"]: one for one in cndpm("data", "status", "--data-dir", str(mnist_dir), "--json").json["datasets"]
    }
    assert found["mnist"]["present"]
    assert found["mnist"]["location"] == str(mnist_dir / "MNIST" / "raw")
    assert not found["cifar10"]["present"]
    assert found["digits"]["present"]
    assert "mnist" in cndpm("data", "status", "--data-dir", str(mnist_dir)).out


def test_data_verify_ends_with_1_where_files_are_not_what_was_published(cndpm, mnist_dir):
    outcome = cndpm("data", "verify", "mnist", "--data-dir", str(mnist_dir), "--json")
    assert outcome.code == 1
    assert not all(check["ok"] for check in outcome.json["mnist"])


def test_data_verify_of_what_is_right_ends_with_0(cndpm):
    outcome = cndpm("data", "verify", "digits", "--json")
    assert outcome.code == 0
    assert all(check["ok"] for check in outcome.json["digits"])


def test_data_verify_of_what_is_missing_says_how_to_get_it(cndpm, tmp_path):
    outcome = cndpm("data", "verify", "cifar10", "--data-dir", str(tmp_path))
    assert outcome.code == 1
    assert "cndpm data fetch cifar10" in outcome.err


def test_data_fetch_keeps_what_is_there(cndpm, mnist_dir):
    outcome = cndpm("data", "fetch", "mnist", "--data-dir", str(mnist_dir), "--json")
    assert outcome.code == 0
    assert outcome.json == {"fetched": {"mnist": str(mnist_dir)}}


def test_data_fetch_of_an_unknown_dataset_is_answered_with_the_nearest(cndpm, tmp_path):
    outcome = cndpm("data", "fetch", "minst", "--data-dir", str(tmp_path))
    assert outcome.code == 2
    assert "mnist" in outcome.err


def test_data_verify_says_how_to_replace_what_differs(cndpm, mnist_dir):
    assert "cndpm data fetch mnist --force" in cndpm("data", "verify", "mnist", "--data-dir", str(mnist_dir)).err


def test_data_fetch_with_force_replaces_what_can_be_read(cndpm, mnist_dir, monkeypatch):
    asked = []
    monkeypatch.setattr("cndpm.datasets.fetch_dataset", lambda *names, force, **_: asked.append((names[0], force)))
    cndpm("data", "fetch", "mnist", "--data-dir", str(mnist_dir), "--force")
    cndpm("data", "fetch", "mnist", "--data-dir", str(mnist_dir))
    assert asked == [("mnist", True), ("mnist", False)]
