"""The path integral of synaptic intelligence on losses whose answer is known."""

from __future__ import annotations

import torch

from cndpm.baselines.si import SI, PathIntegral

CPU = torch.device("cpu")


def test_path_integral_on_a_quadratic_is_each_weights_share_in_the_fall_of_the_loss():
    r"""For L = 1/2 sum a_i w_i^2 gradient flow gives omega_i = a_i (w_i(0)^2 - w_i(T)^2) / 2 exactly."""
    curvature = torch.tensor([0.1, 1.0, 5.0, 0.0], dtype=torch.float64)
    start = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    weights = start.clone()
    path = PathIntegral(1e-3, CPU)
    path.begin(weights)
    for _ in range(20000):
        gradient = curvature * weights
        path.advance(gradient, -1e-4 * gradient)
        weights = weights - 1e-4 * gradient
    share = 0.5 * curvature * (start.square() - weights.square())
    torch.testing.assert_close(path.contribution, share, rtol=1e-3, atol=1e-9)
    expected = share / ((weights - start).square() + 1e-3)
    torch.testing.assert_close(path.importance(weights), expected, rtol=1e-3, atol=1e-9)


def test_a_weight_that_raised_the_loss_has_no_importance():
    path = PathIntegral(0.1, CPU)
    path.begin(torch.zeros(2))
    path.advance(torch.tensor([1.0, 1.0]), torch.tensor([0.5, -0.5]))
    assert torch.equal(path.importance(torch.tensor([0.5, -0.5])) > 0, torch.tensor([False, True]))


def test_importances_of_tasks_add_up_and_the_anchor_follows():
    learner = SI(SI.Settings(hidden=4), input_shape=(3,), n_classes=2)
    x, y = torch.rand(8, 3, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 2
    learner.begin_task(0)
    learner.learn(x, y)
    learner.end_task()
    first = learner.penalty.importance
    learner.begin_task(1)
    learner.learn(x, 1 - y)
    second = learner.path.importance(learner.trainer.weights())
    learner.end_task()
    torch.testing.assert_close(learner.penalty.importance, first + second)
    weights = learner.trainer.weights()
    torch.testing.assert_close(learner.penalty.gradient(weights), torch.zeros_like(weights), atol=1e-7, rtol=0)
