"""A small version of ``python -m torture.loaders``, and that it would notice what it looks for."""

import warnings
from random import Random

import pytest
from torture.attempts import Count, carry_out
from torture.loader_worker import attempt
from torture.loaders import ATTACKS
from torture.small_run import be_quick
from torture.state_mutations import mutate_state
from torture.victims import FLIPPED, VICTIMS, prepare

from cndpm import CNDPMClassifier
from cndpm.errors import DamageWarning
from cndpm.experiments import loop
from cndpm.state import StateError, state_file


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    before = loop.describe_environment
    be_quick()
    folder = tmp_path_factory.mktemp("loaders")
    prepare(folder)
    yield folder
    loop.describe_environment = before


@pytest.mark.parametrize("victim", dict.fromkeys(VICTIMS), ids=lambda victim: victim.name)
def test_nothing_that_is_damaged_passes_for_whole(root, victim):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        for number in range(4 if "run" in victim.name else 8):
            done, outcome, detail = attempt(root, victim, Random(f"suite {number}"))
            assert outcome not in Count(ATTACKS["files"]).bad, (done, detail)


@pytest.mark.parametrize("victim", FLIPPED, ids=lambda victim: victim.name)
def test_a_single_bit_is_refused_anywhere(root, victim):
    outcomes = {attempt(root, victim, Random(f"suite {number}"), flips=True)[1] for number in range(25)}
    assert outcomes == {"refused"}


def test_a_checksum_that_is_not_looked_at_would_be_noticed(root, monkeypatch):
    monkeypatch.setattr(state_file, "has_right_checksum", lambda file, size: True)
    outcomes = {attempt(root, FLIPPED[0], Random(f"suite {number}"), flips=True)[1] for number in range(40)}
    assert "silent" in outcomes


def test_a_file_that_is_refused_for_want_of_memory_alone_would_be_noticed(root, monkeypatch):
    def asks(*_, **__):
        raise StateError("damaged: RuntimeError: DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(CNDPMClassifier, "load", asks)
    assert attempt(root, VICTIMS[0], Random("suite 0"))[1] == "greedy"
    assert "greedy" in Count(ATTACKS["files"]).bad


@pytest.mark.slow
def test_attempts_in_a_process_of_their_own_are_counted_by_victim():
    names = [victim.name for victim in FLIPPED]
    count = carry_out(Count(ATTACKS["flips"]), 0, range(len(names)))
    assert count.lines == []
    assert list(count.by_name) == names
    assert count.total("refused") == len(names)


def test_a_state_that_lost_its_tree_or_all_tensors_can_be_changed_further(root):
    for number in (9778, 19858):  # each ended the attack itself once
        done, content = mutate_state(root / "images.a", Random(f"0 {number}"))
        assert "left" in done and content
