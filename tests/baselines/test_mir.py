"""Maximally interfered retrieval against an explicit virtual step."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, batch, weights_of
from torch import Tensor

from cndpm.baselines.mir import MIR


def interference_by_hand(learner: MIR, x: Tensor, y: Tensor, x_past: Tensor, y_past: Tensor, rate: float) -> Tensor:
    """How much the loss of each past sample rises by a real step of a copy, (n_past,)."""
    network = copy.deepcopy(learner.network)
    before = F.cross_entropy(network(x_past), y_past, reduction="none")
    optimizer = torch.optim.SGD(network.parameters(), lr=rate)
    F.cross_entropy(network(x), y).backward()
    optimizer.step()
    return (F.cross_entropy(network(x_past), y_past, reduction="none") - before).detach()


def test_interference_is_the_rise_of_the_loss_after_a_real_step():
    learner = MIR(MIR.Settings(memory_size=4, virtual_rate=0.05, **PLAIN), input_shape=(5,), n_classes=4)
    (x, y), (x_past, y_past) = batch(4, 0), batch(7, 1)
    expected = interference_by_hand(learner, x, y, x_past, y_past, 0.05)
    torch.testing.assert_close(learner._interference(x, y, x_past, y_past), expected)


def test_the_most_interfered_of_the_memory_are_replayed():
    settings = MIR.Settings(memory_size=12, candidates=12, replay_batch=3, virtual_rate=0.2, **PLAIN)
    learner = MIR(settings, input_shape=(5,), n_classes=4)
    past, (x, y) = batch(12, 0), batch(5, 1)
    learner.learn(*past)
    worst = interference_by_hand(learner, x, y, *past, rate=0.2).argsort(descending=True)[:3]
    inputs, labels = torch.cat([x, past[0][worst]]), torch.cat([y, past[1][worst]])
    expected = after_step(learner.network, F.cross_entropy(learner.network(inputs), labels))
    learner.learn(x, y)
    torch.testing.assert_close(weights_of(learner.network), expected)
    assert learner.memory.n_seen == 17


def test_only_as_many_as_there_are_candidates_are_weighed():
    learner = MIR(MIR.Settings(memory_size=12, candidates=2, **PLAIN), input_shape=(5,), n_classes=4)
    learner.learn(*batch(12, 0))
    asked = []
    measure = learner._interference
    learner._interference = lambda x, y, x_past, y_past: asked.append(len(x_past)) or measure(x, y, x_past, y_past)
    learner.learn(*batch(5, 1))
    assert asked == [2]
