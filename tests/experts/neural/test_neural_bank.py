"""What a bank of networks keeps, and what it lets go of."""

import gc
import weakref
from contextlib import contextmanager

import pytest
import torch

from asking import make_bank, n_experts
from cndpm.experts.chunks import Samples
from cndpm.model.settings import CNDPMSettings

SMALL = {"hidden": 4, "hidden_growth": 2, "latent_dim": 2, "density_sleep_steps": 3, "predictor_sleep_steps": 3}


@contextmanager
def nobody_looks_for_circles():
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def grow(bank):
    generator = torch.Generator().manual_seed(n_experts(bank))
    bank.found(Samples(torch.rand(9, 6, generator=generator)), torch.arange(9) % 3)
    lessons = [weakref.ref(lesson) for lesson in bank._in_training.lessons]
    while bank.train(2) < 1:
        pass
    return lessons


@pytest.fixture
def bank():
    made = make_bank(CNDPMSettings.paper(**SMALL), input_shape=(6,), n_classes=3, seed=0, device=torch.device("cpu"))
    grow(made)
    return made


def test_a_sleep_that_is_over_keeps_nothing_of_the_memory(bank):
    """Features of a memory take more than a gigabyte where there are many experts: they go at once."""
    with nobody_looks_for_circles():
        assert [lesson() for lesson in grow(bank)] == [None, None]


def test_what_was_recorded_for_fewer_experts_goes_when_one_comes(bank):
    x, y = torch.rand(4, 6), torch.tensor([0, 1, 2, 0])
    with nobody_looks_for_circles():
        samples = Samples(x)
        bank.evidence(samples, y)
        bank.learn(samples, y, torch.ones(4, 1, dtype=torch.float64))
        before = weakref.ref(bank.panel)
        grow(bank)
        assert before() is None


def test_features_of_a_memory_are_the_same_in_one_part_and_in_many(bank, monkeypatch):
    grow(bank)
    x = torch.rand(9, 6)
    whole = bank.panel.offered(x)
    monkeypatch.setattr("cndpm.experts.neural.panel.AT_ONCE", 4)
    for in_parts, expected in zip(bank.panel.offered(x), whole, strict=True):
        assert len(expected) == 2
        for part, feature in zip(in_parts, expected, strict=True):
            torch.testing.assert_close(part, feature)
