"""Folders that never collide, and seeds that belong together."""

import json

import pytest

from cndpm.experiments import ConfigError, RecordError, compare_learners, configure, run_seeds
from cndpm.experiments.sweep import claim_folder, folder_name, latest_folder

QUICK = ["run.evaluations=0", "run.max_batches=20"]


def quick(**options):
    return configure("split-digits", learner="finetune", device="cpu", overrides=QUICK, **options)


def test_a_folder_is_named_by_what_may_stand_in_its_name():
    assert folder_name("a/split-digits-mine:Learner") == "a_split-digits-mine_Learner"


def test_every_claim_is_a_new_folder(tmp_path):
    names = [claim_folder("x", tmp_path).name for _ in range(3)]
    assert names == ["x", "x-2", "x-3"]


def test_a_claim_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="--out"):
        claim_folder("x", tmp_path / "file")


def test_the_latest_folder_is_the_newest_with_the_same_configuration(tmp_path):
    for config in (quick(), quick(), quick(epochs=2)):
        run_seeds(config, [0], claim_folder("x", tmp_path))
    assert latest_folder(quick(seed=7), "x", tmp_path) == tmp_path / "x-2"
    assert latest_folder(quick(epochs=3), "x", tmp_path) is None


def test_a_sweep_is_written_beside_its_runs(tmp_path):
    result = run_seeds(quick(), [2, 5], tmp_path)
    assert json.loads((tmp_path / "result.json").read_text()) == result
    assert [run["seed"] for run in result["runs"]] == [2, 5]


def test_comparing_nobody_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="at least one learner"):
        compare_learners("split-digits", [], tmp_path)


def test_a_mistyped_learner_is_found_before_the_first_run(tmp_path):
    with pytest.raises(ValueError, match="reservoir"):
        compare_learners("split-digits", ["finetune", "resevoir"], tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()
