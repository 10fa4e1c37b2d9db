"""A limit on experts: the most similar become one without loss, or no more are founded."""

import warnings

import pytest
import torch

from cndpm.experts.chunks import Samples
from cndpm.experts.features import IdentityFeatures
from cndpm.experts.gaussian import GaussianBank
from cndpm.model import limit
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings


def stream(n_groups: int = 6, n: int = 90, d: int = 4, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    centres = 8 * torch.randn(n_groups, d, generator=generator)
    y = torch.arange(n_groups).repeat_interleave(n)
    return centres[y] + torch.randn(len(y), d, generator=generator), y


def learned(target: str = "classes", **options) -> CNDPM:
    learner = CNDPM(CNDPMSettings(memory_size=30, target=target, **options), input_shape=(4,))
    x, y = stream()
    learner.learn_block(x, {"classes": y, "none": None, "values": x[:, :1]}[target], 10)
    return learner


@pytest.mark.parametrize("target", ["classes", "none", "values"])
def test_at_the_limit_the_most_similar_experts_become_one_and_nothing_is_lost(target):
    free = learned(target)
    with pytest.warns(UserWarning, match="limit on experts"):
        bound = learned(target, max_experts=3)
    assert free.n_experts > bound.n_experts == 3
    assert float(bound.counts.sum()) + len(bound.memory) == pytest.approx(540)


def test_merging_loses_no_class():
    x, y = stream()
    with pytest.warns(UserWarning, match="become one"):
        learner = learned(max_experts=2)
    assert (learner.predict_log_proba(x).argmax(1) == y).double().mean() > 0.99
    assert [event.kind for event in learner.events.events].count("merged") >= 3


def test_where_more_are_refused_the_experts_there_are_learn_the_memory():
    with pytest.warns(UserWarning, match="no more experts are founded"):
        learner = learned(max_experts=2, at_limit="refuse")
    x, y = stream()
    assert learner.n_experts == 2
    assert float(learner.counts.sum()) + len(learner.memory) == pytest.approx(540)
    assert (learner.predict_log_proba(x).argmax(1) == y).double().mean() > 0.9


def test_without_a_number_the_limit_comes_before_the_memory_runs_out(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        free = learned()
    n_bytes = 24 * free.bank.footprint().n_numbers_kept  # of all its experts, of which there is room for fewer
    monkeypatch.setattr(limit, "total_memory", lambda device: 2 * n_bytes)
    with pytest.warns(UserWarning, match="limit on experts"):
        assert learned().n_experts < free.n_experts


def test_experts_of_the_same_labels_are_the_most_alike():
    generator = torch.Generator().manual_seed(1)
    bank = GaussianBank(IdentityFeatures(), n_classes=2)
    for shift, label in ((0.0, 0), (1.0, 1), (9.0, 0)):
        bank.found(Samples(shift + torch.randn(40, 4, generator=generator)), torch.full((40,), label))
        bank.train(1)
    alike = bank.affinity().fill_diagonal_(-torch.inf)
    assert divmod(int(alike.argmax()), 3) in ((0, 2), (2, 0))
    assert alike[0, 1] > alike[1, 2]


def test_a_sleep_that_was_interrupted_at_the_limit_keeps_it():
    x, y = stream()
    learner = CNDPM(CNDPMSettings(memory_size=30, max_experts=2), input_shape=(4,))

    def interrupt(phase: str, fraction: float) -> None:
        if learner.n_experts == 2:
            learner.on_progress = None
            raise KeyboardInterrupt

    learner.on_progress = interrupt
    with pytest.warns(UserWarning, match="become one"):
        with pytest.raises(KeyboardInterrupt):
            learner.learn_block(x, y, 10)
        learner.settle()
    assert learner.n_experts == 2
