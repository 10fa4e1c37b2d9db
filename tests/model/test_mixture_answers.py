"""Answers of a mixture by the parts that they are made of."""

import math

import pytest
import torch

from cndpm.mixture import log_gate, log_mixture_density, mix_log_proba
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings


def make(**changes) -> CNDPM:
    settings = {"memory_size": 30, "features": "identity", "log_alpha": -20.0, **changes}
    return CNDPM(CNDPMSettings(**settings), input_shape=(3,), n_classes=3)


def rows(n: int, centre: float, seed: int) -> torch.Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(seed)) + centre


@pytest.fixture
def waiting() -> CNDPM:
    """One expert of thirty samples of two classes, and seven samples of a third one in the memory."""
    learner = make()
    learner.learn(rows(30, 0.0, 0), torch.arange(30) % 2)
    learner.learn(rows(7, 40.0, 1), torch.full((7,), 2))
    assert learner.n_experts == 1 and len(learner.memory) == 7
    return learner


def test_before_anything_was_learned_classes_are_equally_probable():
    assert make().predict_log_proba(rows(2, 0.0, 0)).tolist() == [[pytest.approx(-math.log(3))] * 3] * 2


def test_what_waits_answers_as_one_component_of_as_many_samples(waiting):
    asked = rows(5, 3.0, 2)
    bank = waiting.bank
    (samples,) = bank.open(asked)
    memory = bank.provisional(*waiting.memory.batch(), exact=False)
    log_density = torch.stack([bank.log_density(samples, exact=False)[:, 0], memory.log_density(samples)], dim=1)
    counts = torch.tensor([30.0, 7.0])
    predictive = torch.stack([bank.predictive(samples, exact=False)[:, 0], memory.predictive(samples)], dim=1)
    expected = mix_log_proba(log_gate(log_density, counts), predictive)
    torch.testing.assert_close(waiting.predict_log_proba(asked, when="any"), expected)
    torch.testing.assert_close(waiting.log_prob(asked), log_mixture_density(log_density, counts))
    torch.testing.assert_close(waiting.responsible_log_proba(asked), log_gate(log_density, counts))


def test_the_expert_that_a_sample_is_drawn_of_is_drawn_by_its_count():
    learner = make(log_alpha=-5.0)
    for centre, n in ((0.0, 90), (60.0, 30)):
        learner.learn_block(rows(n, centre, 3), torch.full((n,), int(centre > 0)), 10)
    assert learner.counts.tolist() == pytest.approx([90.0, 30.0])
    chosen = learner.sample(2000, seed=0)[2]
    assert float((chosen == 0).double().mean()) == pytest.approx(0.75, abs=0.03)


def test_what_is_learned_makes_answers_inexact_again():
    learner = make()
    learner.learn_block(rows(100, 0.0, 0), torch.arange(100) % 2, 10)
    learner.finish()
    learner.learn(rows(2, 3.0, 5), torch.tensor([0, 1]))
    asked = rows(4, 0.5, 6)
    lagging, exact = learner.predict_log_proba(asked), learner.predict_log_proba(asked, exact=True)
    assert not torch.equal(lagging, exact)
    learner.finish()
    assert torch.equal(learner.predict_log_proba(asked), exact)


def test_experts_that_answer_together_count_for_all_of_their_samples(monkeypatch):
    learner = make(log_alpha=-5.0)
    for centre, n in ((0.0, 60), (9.0, 30), (40.0, 7)):
        learner.learn_block(rows(n, centre, 3), torch.full((n,), int(centre > 20)), 10)
    assert learner.n_experts == 2 and len(learner.memory) == 7
    asked = torch.linspace(9.0, 40.0, 200)[:, None].expand(-1, 3)
    apart = learner.predict_log_proba(asked, when="any")
    assert ((apart.exp() > 0.1) & (apart.exp() < 0.9)).any()
    monkeypatch.setattr("cndpm.experts.gaussian.classes._FEW_ANSWERS", 0)
    torch.testing.assert_close(learner.predict_log_proba(asked, when="any"), apart, rtol=1e-6, atol=1e-6)


def flat(state) -> list:
    """The leaves of a state in order, to the bit, as text: NaN is equal to NaN."""
    if isinstance(state, dict):
        return [leaf for name in sorted(state) for leaf in flat(state[name])]
    if isinstance(state, list | tuple):
        return [leaf for part in state for leaf in flat(part)]
    return [repr(state.tolist() if isinstance(state, torch.Tensor) else state)]


@pytest.mark.parametrize("batch_size", [1, 10])
@pytest.mark.parametrize("target", ["classes", "values"])
def test_rows_that_are_asked_about_before_they_are_learned_give_the_same_bits(target, batch_size):
    settings = CNDPMSettings(memory_size=30, target=target)
    asked, unasked = (CNDPM(settings, input_shape=(3,)) for _ in range(2))
    x, y = rows(150, 0.0, 3), torch.arange(150) % 3
    x[100:] += 20.0
    targets = y if target == "classes" else x[:, :1] + y[:, None]
    for i in range(0, 150, batch_size):
        part = slice(i, i + batch_size)
        if i:
            (asked.predict_log_proba if target == "classes" else asked.predict_moments)(x[part])
        for learner in (asked, unasked):
            learner.learn(x[part], targets[part])
    assert flat(asked.state_dict()) == flat(unasked.state_dict())


def test_an_answer_is_not_learned_from_once_the_experts_have_changed():
    asked, unasked = (CNDPM(CNDPMSettings(memory_size=30), input_shape=(3,)) for _ in range(2))
    for learner in (asked, unasked):
        learner.learn_block(rows(115, 0.0, 3), torch.arange(115) % 2, 5)
        learner.learn_block(rows(5, 6.0, 4), torch.full((5,), 2), 5)
        assert len(learner.memory)
    asked.predict_log_proba(rows(5, 6.0, 5), exact=True)
    asked.predict_log_proba(rows(5, 1.0, 6))
    for learner, row in ((asked, rows(5, 1.0, 6)), (unasked, rows(5, 1.0, 6))):
        learner.consolidate()
        learner.learn(row, torch.ones(5).long())
    assert flat(asked.state_dict()) == flat(unasked.state_dict())
