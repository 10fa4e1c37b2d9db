"""Small versions of ``python -m torture.crash_points`` and ``python -m torture.kills``, and that they would notice."""

import contextlib
from collections import Counter

import pytest
from torture.crash_points import crash, recorded_run, recorded_save, recorded_server
from torture.kills import attempts as kill
from torture.small_run import be_quick

from cndpm import storage
from cndpm.experiments import loop
from cndpm.serving import store
from torture import crash_points, disk


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(loop, "describe_environment", loop.describe_environment)  # put back afterwards
    be_quick()


def crashed(victim, points, folder):
    return Counter(outcome.name for outcome in crash(victim, 0, points, folder / "crashed"))


def is_noticed(victim, folder):
    return any(outcome.name == "wrong" for outcome in crash(victim, 0, range(victim.n_points), folder / "crashed"))


def test_a_run_goes_on_to_the_same_bits_after_a_loss_of_power_anywhere(tmp_path):
    victim = recorded_run(tmp_path, seed=0)
    outcomes = crashed(victim, range(0, victim.n_points, 61), tmp_path)
    assert outcomes["wrong"] == 0 and outcomes["right"] > 10


def test_a_model_is_saved_whole_or_not_at_all_wherever_the_power_is_lost(tmp_path):
    victim = recorded_save(tmp_path, seed=0)
    outcomes = crashed(victim, range(victim.n_points), tmp_path)
    assert outcomes["wrong"] == 0 and outcomes["right"] > 15


def test_a_server_comes_back_with_all_that_was_acknowledged_wherever_the_power_is_lost(tmp_path):
    victim = recorded_server(tmp_path, seed=0)
    outcomes = crashed(victim, range(0, victim.n_points, 7), tmp_path)
    assert outcomes["wrong"] == 0 and outcomes["right"] > 8


def test_a_log_that_goes_before_its_witness_would_be_noticed(tmp_path, monkeypatch):
    def reversed_order(path):
        storage.remove_file(path)
        storage.remove_file(store.witness_of(path))

    monkeypatch.setattr(store, "_remove_log", reversed_order)
    victim = recorded_server(tmp_path, seed=0)
    assert is_noticed(victim, tmp_path)


def test_a_sync_that_is_forgotten_would_be_noticed(tmp_path, monkeypatch):
    class Careless:
        def __getattr__(self, name):
            return getattr(original, name)

        def fsync(self, handle):
            if handle in original._folders:  # names are brought to the disk, contents are not
                original.fsync(handle)

    @contextlib.contextmanager
    def recording():
        nonlocal original
        with disk.recording() as original:
            storage.os = Careless()  # the recorder puts it back
            yield original

    original = None
    monkeypatch.setattr(crash_points, "recording", recording)
    victim = recorded_save(tmp_path, seed=0)
    assert is_noticed(victim, tmp_path)


def test_runs_that_are_killed_go_on_to_the_same_bits(tmp_path):
    outcomes = Counter()
    for outcome in kill(0, 0, 5, tmp_path):
        outcomes[outcome.name] += outcome.times
    assert outcomes["same"] == 5 and outcomes["wrong"] == 0 and outcomes["kills"] > 0
