"""Small versions of ``python -m torture.crash_points`` and ``python -m torture.kills``, and that they would notice."""

import contextlib

import pytest
from torture.crash_points import attack_run, attack_save
from torture.kills import attack as kill
from torture.small_run import be_quick

from cndpm import storage
from cndpm.experiments import loop
from torture import crash_points, disk


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(loop, "describe_environment", loop.describe_environment)  # put back afterwards
    be_quick()


def test_a_run_goes_on_to_the_same_bits_after_a_loss_of_power_anywhere(tmp_path):
    n_points, n_states, bad = attack_run(tmp_path, seed=0, every=61)
    assert bad == []
    assert n_points > 5 and n_states > 10


def test_a_model_is_saved_whole_or_not_at_all_wherever_the_power_is_lost(tmp_path):
    n_points, n_states, bad = attack_save(tmp_path, seed=0)
    assert bad == []
    assert n_points > 10 and n_states > 15


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
    assert attack_save(tmp_path, seed=0)[2]


def test_runs_that_are_killed_go_on_to_the_same_bits(tmp_path):
    n_kills, n_runs, bad = kill(tmp_path, n=5, seed=0)
    assert (n_kills, bad) == (5, [])
    assert n_runs > 0
