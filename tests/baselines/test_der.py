"""Dark experience replay: the stored logits and the two terms made of the memory."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, batch, weights_of
from torch import Tensor

from cndpm.baselines.der import DER, DERPlusPlus

FACTS = {"input_shape": (5,), "n_classes": 4}


def test_der_replays_the_logits_it_gave_when_it_met_the_sample():
    learner = DER(DER.Settings(alpha=0.7, memory_size=4, **PLAIN), **FACTS)
    first, second = batch(4, 0), batch(6, 1)
    logits_then = learner.network(first[0]).detach()
    learner.learn(*first)
    torch.testing.assert_close(learner.memory.rows["logits"], logits_then)
    assert learner.memory.rows.keys() == {"x", "logits"}
    away = (learner.network(first[0]) - logits_then).square().mean()
    assert away > 1e-3
    expected = after_step(learner.network, F.cross_entropy(learner.network(second[0]), second[1]) + 0.7 * away)
    learner.learn(*second)
    torch.testing.assert_close(weights_of(learner.network), expected)


def test_der_plus_plus_adds_the_stored_labels():
    learner = DERPlusPlus(DERPlusPlus.Settings(alpha=0.3, beta=0.9, memory_size=4, **PLAIN), **FACTS)
    first, second = batch(4, 0), batch(6, 1)
    logits_then = learner.network(first[0]).detach()
    learner.learn(*first)
    torch.testing.assert_close(learner.memory.rows["logits"], logits_then)
    assert torch.equal(learner.memory.rows["y"], first[1])
    past = learner.network(first[0])
    loss = F.cross_entropy(learner.network(second[0]), second[1])
    loss = loss + 0.3 * (past - logits_then).square().mean() + 0.9 * F.cross_entropy(past, first[1])
    expected = after_step(learner.network, loss)
    learner.learn(*second)
    torch.testing.assert_close(weights_of(learner.network), expected)


@pytest.mark.parametrize(("cls", "weights"), [(DER, ("alpha",)), (DERPlusPlus, ("alpha", "beta"))])
def test_every_weight_of_the_loss_changes_the_step(cls: type[DER], weights: tuple[str, ...]):
    def learned(**changed: float) -> Tensor:
        learner = cls(cls.Settings(memory_size=8, **PLAIN, **changed), **FACTS)
        for seed in range(3):
            learner.learn(*batch(6, seed))
        return weights_of(learner.network)

    for name in weights:
        assert (learned(**{name: 0.0}) - learned(**{name: 1.0})).norm() > 1e-2


def test_the_two_terms_of_der_plus_plus_draw_independently():
    learner = DERPlusPlus(DERPlusPlus.Settings(memory_size=40, replay_batch=3, **PLAIN), **FACTS)
    x, y = batch(40, 0)
    learner.learn(x, y)
    inputs, (first, second) = learner.draws(x[:2])
    assert torch.equal(inputs, torch.cat([x[:2], first["x"], second["x"]]))
    assert len(first["x"]) == len(second["x"]) == 3
    assert not torch.equal(first["x"], second["x"])


def test_nothing_is_drawn_of_an_empty_memory():
    learner = DER(DER.Settings(**PLAIN), **FACTS)
    x, _ = batch(3, 0)
    inputs, rows = learner.draws(x)
    assert torch.equal(inputs, x)
    assert rows == []
