"""Fisher information and the penalties built from it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cndpm.baselines.ewc import EWC, OnlineEWC, fisher_information
from cndpm.baselines.mas import output_sensitivity
from cndpm.baselines.shared.networks import build_classifier
from cndpm.baselines.shared.penalty import QuadraticPenalty

CPU = torch.device("cpu")


def tiny_problem() -> tuple[nn.Module, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    network = build_classifier("mlp", (6,), 3, generator, hidden=5)
    return network, torch.randn(40, 6, generator=generator), torch.randint(3, (40,), generator=generator)


def flat(gradients: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([g.reshape(-1) for g in gradients])


def test_fisher_information_is_the_mean_squared_gradient_of_single_samples():
    network, x, y = tiny_problem()
    parameters = list(network.parameters())
    squares = [
        flat(torch.autograd.grad(F.cross_entropy(network(x[i : i + 1]), y[i : i + 1]), parameters)).square()
        for i in range(len(x))
    ]
    torch.testing.assert_close(fisher_information(network, x, y), torch.stack(squares).mean(0))


def test_output_sensitivity_is_the_mean_absolute_gradient_of_single_outputs():
    network, x, y = tiny_problem()
    parameters = list(network.parameters())
    sizes = [flat(torch.autograd.grad(network(x[i : i + 1]).square().sum(), parameters)).abs() for i in range(len(x))]
    torch.testing.assert_close(output_sensitivity(network, x, y), torch.stack(sizes).mean(0))


def test_penalty_gradient_is_that_of_the_sum_over_tasks():
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(7, generator=generator, requires_grad=True)
    penalty = QuadraticPenalty(3.0, CPU)
    assert torch.equal(penalty.gradient(weights.detach()), torch.zeros(7))
    loss = torch.zeros(())
    for _ in range(3):
        importance, anchor = torch.rand(7, generator=generator), torch.randn(7, generator=generator)
        penalty.add(importance, anchor)
        loss = loss + 3.0 / 2 * (importance * (weights - anchor).square()).sum()
    (expected,) = torch.autograd.grad(loss, weights)
    torch.testing.assert_close(penalty.gradient(weights.detach()), expected)


def test_online_ewc_decays_old_importance_and_anchors_at_the_last_task():
    settings = OnlineEWC.Settings(hidden=4, decay=0.5, importance_samples=20)
    learner = OnlineEWC(settings, input_shape=(6,), n_classes=3)
    _, x, y = tiny_problem()
    learner.learn(x[:20], y[:20])
    learner.end_task()
    first = learner.penalty.importance
    learner.learn(x[20:], y[20:])
    second = fisher_information(learner.network, x[20:], y[20:])
    learner.end_task()
    torch.testing.assert_close(learner.penalty.importance, second + 0.5 * first)
    weights = learner.trainer.weights()
    torch.testing.assert_close(learner.penalty.gradient(weights), torch.zeros_like(weights), atol=1e-7, rtol=0)


def test_a_strong_penalty_keeps_the_weights_where_the_first_task_left_them():
    _, x, y = tiny_problem()
    moved = {}
    for strength in (0.0, 1e6):
        settings = EWC.Settings(hidden=4, optimizer="sgd", learning_rate=1e-7, strength=strength, clip_value=None)
        learner = EWC(settings, input_shape=(6,), n_classes=3)
        learner.learn(x, y)
        learner.end_task()
        anchor = learner.trainer.weights()
        learner.penalty.move(torch.ones_like(anchor), anchor)
        learner.trainer.set_learning_rate(1e-6)
        for _ in range(200):
            learner.learn(x, 2 - y)
        moved[strength] = (learner.trainer.weights() - anchor).norm()
    assert moved[1e6] < 0.02 * moved[0.0]
