"""Fisher information and the penalties built from it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, batch, gradient_of, weights_of
from torch import Tensor, nn

from cndpm.baselines.ewc import EWC, OnlineEWC, fisher_information
from cndpm.baselines.shared.networks import build_classifier

FACTS = {"input_shape": (5,), "n_classes": 4}
STRENGTH = 3.0


def fisher_by_hand(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean of squared gradients of single samples, one by one."""
    gradients = [gradient_of(F.cross_entropy(network(x[i : i + 1]), y[i : i + 1]), network) for i in range(len(x))]
    return torch.stack(gradients).square().mean(0)


def test_fisher_information_is_the_mean_squared_gradient_of_single_samples():
    network = build_classifier("mlp", (5,), 4, torch.Generator().manual_seed(0), hidden=5)
    x, y = batch(70, 0)  # more than twice as many as are differentiated at a time
    torch.testing.assert_close(fisher_information(network, x, y), fisher_by_hand(network, x, y))


def learn_tasks(learner: EWC | OnlineEWC, n_tasks: int) -> list[tuple[Tensor, Tensor]]:
    """Teaches tasks of three batches; returns each one's Fisher information, computed by hand, and its last weights."""
    ends = []
    for task in range(n_tasks):
        learner.begin_task(task)
        batches = [batch(6, 10 * task + i) for i in range(3)]
        for x, y in batches:
            learner.learn(x, y)
        x, y = (torch.cat(part) for part in zip(*batches, strict=True))
        ends.append((fisher_by_hand(learner.network, x, y), weights_of(learner.network)))
        learner.end_task()
    return ends


def test_ewc_steps_down_the_loss_and_a_quadratic_penalty_for_every_past_task():
    learner = EWC(EWC.Settings(strength=STRENGTH, importance_samples=50, **PLAIN), **FACTS)
    ends = learn_tasks(learner, 2)
    learner.begin_task(2)
    for seed in (7, 8):  # at the first step the last anchor pulls nowhere yet
        x, y = batch(6, seed)
        weights = weights_of(learner.network)
        pull = STRENGTH * sum(fisher * (weights - anchor) for fisher, anchor in ends)
        assert seed == 7 or pull.norm() > 1e-2
        expected = after_step(learner.network, F.cross_entropy(learner.network(x), y)) - PLAIN["learning_rate"] * pull
        learner.learn(x, y)
        torch.testing.assert_close(weights_of(learner.network), expected)


def test_online_ewc_decays_old_importance_and_anchors_at_the_last_task():
    learner = OnlineEWC(OnlineEWC.Settings(strength=STRENGTH, decay=0.4, importance_samples=50, **PLAIN), **FACTS)
    (first, _), (second, _), (third, anchor) = learn_tasks(learner, 3)
    importance = third + 0.4 * (second + 0.4 * first)
    learner.begin_task(3)
    learner.learn(*batch(6, 7))
    x, y = batch(6, 8)
    pull = STRENGTH * importance * (weights_of(learner.network) - anchor)
    expected = after_step(learner.network, F.cross_entropy(learner.network(x), y)) - PLAIN["learning_rate"] * pull
    learner.learn(x, y)
    torch.testing.assert_close(weights_of(learner.network), expected)


@pytest.mark.parametrize("cls", [EWC, OnlineEWC])
def test_importance_is_measured_on_the_task_that_ends_only(cls: type[EWC] | type[OnlineEWC]):
    learner = cls(cls.Settings(importance_samples=50, **PLAIN), **FACTS)
    learner.begin_task(0)
    learner.learn(*batch(8, 0))
    learner.begin_task(1)  # the one before was never ended
    learner.learn(*batch(8, 1))
    expected = fisher_by_hand(learner.network, *batch(8, 1))
    learner.end_task()
    assert learner.penalty.importance is not None
    torch.testing.assert_close(learner.penalty.importance, expected)
    assert len(learner.memory) == 0


@pytest.mark.parametrize("cls", [EWC, OnlineEWC])
def test_a_task_without_samples_leaves_the_penalty_as_it_was(cls: type[EWC] | type[OnlineEWC]):
    learner = cls(cls.Settings(**PLAIN), **FACTS)
    learner.begin_task(0)
    learner.end_task()
    assert learner.penalty.importance is None
