"""The quadratic penalty of several tasks against the derivative of its definition."""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.baselines.shared.penalty import QuadraticPenalty

CPU = torch.device("cpu")


def tasks(n: int) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(7, generator=generator, requires_grad=True)
    return weights, [(torch.rand(7, generator=generator), torch.randn(7, generator=generator)) for _ in range(n)]


def test_before_the_first_task_has_ended_nothing_pulls():
    weights, _ = tasks(0)
    assert torch.equal(QuadraticPenalty(3.0, CPU).gradient(weights.detach()), torch.zeros(7))


def test_added_tasks_keep_anchors_of_their_own():
    weights, ended = tasks(3)
    penalty = QuadraticPenalty(3.0, CPU)
    for importance, anchor in ended:
        penalty.add(importance, anchor)
    loss = sum(3.0 / 2 * (importance * (weights - anchor).square()).sum() for importance, anchor in ended)
    (expected,) = torch.autograd.grad(loss, weights)
    torch.testing.assert_close(penalty.gradient(weights.detach()), expected)


def test_accumulated_tasks_share_the_last_anchor_and_old_importance_decays():
    weights, ended = tasks(3)
    penalty = QuadraticPenalty(3.0, CPU)
    for importance, anchor in ended:
        penalty.accumulate(importance, anchor, decay=0.4)
    total = ended[2][0] + 0.4 * ended[1][0] + 0.16 * ended[0][0]
    loss = 3.0 / 2 * (total * (weights - ended[2][1]).square()).sum()
    (expected,) = torch.autograd.grad(loss, weights)
    torch.testing.assert_close(penalty.gradient(weights.detach()), expected)


def test_without_a_decay_importances_add_up():
    _, ended = tasks(2)
    penalty = QuadraticPenalty(3.0, CPU)
    for importance, anchor in ended:
        penalty.accumulate(importance, anchor)
    torch.testing.assert_close(penalty.importance, ended[0][0] + ended[1][0])
