"""Memory-aware synapses: how much the answers depend on each weight."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, RATE, after_step, batch, gradient_of, weights_of
from torch import Tensor, nn

from cndpm.baselines.mas import MAS, output_sensitivity
from cndpm.baselines.shared.networks import build_classifier


def sensitivity_by_hand(network: nn.Module, x: Tensor) -> Tensor:
    """The mean absolute gradient of the squared length of single outputs."""
    gradients = [gradient_of((network(x[i : i + 1]) ** 2).sum(), network) for i in range(len(x))]
    return torch.stack(gradients).abs().mean(0)


def test_output_sensitivity_is_the_mean_absolute_gradient_of_single_outputs():
    network = build_classifier("mlp", (5,), 4, torch.Generator().manual_seed(0), hidden=5)
    x, y = batch(70, 0)
    torch.testing.assert_close(output_sensitivity(network, x, y), sensitivity_by_hand(network, x))


def test_mas_steps_down_the_loss_and_a_penalty_by_the_summed_sensitivities():
    learner = MAS(MAS.Settings(strength=0.3, importance_samples=50, **PLAIN), input_shape=(5,), n_classes=4)
    importance, anchor = torch.zeros(()), torch.zeros(())
    for task in range(2):
        learner.begin_task(task)
        x, y = batch(8, task)
        learner.learn(x, y)
        importance, anchor = importance + sensitivity_by_hand(learner.network, x), weights_of(learner.network)
        learner.end_task()
    learner.begin_task(2)
    learner.learn(*batch(8, 7))
    x, y = batch(8, 8)
    pull = 2 * 0.3 * importance * (weights_of(learner.network) - anchor)
    assert pull.norm() > 1e-2
    expected = after_step(learner.network, F.cross_entropy(learner.network(x), y)) - RATE * pull
    learner.learn(x, y)
    torch.testing.assert_close(weights_of(learner.network), expected)
    assert len(learner.memory) == 16  # the present task's samples, none of the past ones'


def test_importance_is_measured_on_the_task_that_ends_only():
    learner = MAS(MAS.Settings(importance_samples=50, **PLAIN), input_shape=(5,), n_classes=4)
    learner.begin_task(0)
    learner.end_task()
    assert learner.penalty.importance is None
    learner.learn(*batch(8, 0))
    learner.end_task()
    assert len(learner.memory) == 0
