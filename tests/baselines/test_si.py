"""The path integral of synaptic intelligence on losses whose answer is known, and the step it leads to."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, RATE, batch, gradient_of, weights_of

from cndpm.baselines.si import SI, PathIntegral

CPU = torch.device("cpu")


def test_path_integral_on_a_quadratic_is_each_weights_share_in_the_fall_of_the_loss():
    r"""For L = 1/2 sum a_i w_i^2 gradient flow gives omega_i = a_i (w_i(0)^2 - w_i(T)^2) / 2 exactly."""
    curvature = torch.tensor([0.1, 1.0, 5.0, 0.0], dtype=torch.float64)
    start = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    weights = start.clone()
    path = PathIntegral(1e-3, CPU)
    path.begin(weights)
    for _ in range(5000):
        gradient = curvature * weights
        path.advance(gradient, -4e-4 * gradient)
        weights = weights - 4e-4 * gradient
    share = 0.5 * curvature * (start.square() - weights.square())
    torch.testing.assert_close(path.contribution, share, rtol=2e-3, atol=1e-9)
    expected = share / ((weights - start).square() + 1e-3)
    torch.testing.assert_close(path.importance(weights), expected, rtol=2e-3, atol=1e-9)


def test_a_weight_that_raised_the_loss_has_no_importance():
    path = PathIntegral(0.1, CPU)
    path.begin(torch.zeros(2))
    path.advance(torch.tensor([1.0, 1.0]), torch.tensor([0.5, -0.5]))
    torch.testing.assert_close(path.importance(torch.tensor([0.5, -0.5])), torch.tensor([0.0, 0.5 / (0.25 + 0.1)]))


def test_si_steps_down_the_loss_and_a_penalty_by_each_weights_part_in_past_progress():
    """All of it written out: omega follows the cross entropy's gradient along steps that the penalty bends."""
    strength, damping = 20.0, 0.05
    learner = SI(SI.Settings(strength=strength, damping=damping, **PLAIN), input_shape=(5,), n_classes=4)
    weights = weights_of(learner.network)
    importance, anchor = torch.zeros_like(weights), weights
    for task in range(3):
        learner.begin_task(task)
        start, omega = weights, torch.zeros_like(weights)
        for seed in range(3):
            x, y = batch(8, 10 * task + seed)
            gradient = gradient_of(F.cross_entropy(learner.network(x), y), learner.network)
            pull = 2 * strength * importance * (weights - anchor)
            moved = weights - RATE * (gradient + pull)
            omega = omega - gradient * (moved - weights)
            learner.learn(x, y)
            torch.testing.assert_close(weights_of(learner.network), moved, atol=1e-4, rtol=1e-4)
            weights = weights_of(learner.network)
        assert task == 0 or pull.norm() > 1e-2
        importance = importance + (omega / ((weights - start) ** 2 + damping)).clamp_min(0)
        anchor = weights
        learner.end_task()
        assert learner.penalty.importance is not None
        torch.testing.assert_close(learner.penalty.importance, importance, atol=1e-4, rtol=1e-4)


def test_a_path_begins_with_the_learner():
    learner = SI(SI.Settings(**PLAIN), input_shape=(5,), n_classes=4)
    before = weights_of(learner.network)
    learner.learn(*batch(8, 0))  # nobody said that a task began
    learner.end_task()
    moved = weights_of(learner.network) - before
    assert learner.penalty.importance is not None
    torch.testing.assert_close(learner.penalty.importance, moved.square() / RATE / (moved.square() + 0.1))
