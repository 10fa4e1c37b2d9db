"""Learning with one network, answering with the mean of its weights."""

from __future__ import annotations

import pytest
import torch

from cndpm.experts.neural.lateral_predictors import AveragedPredictor, Classifier
from cndpm.training.optimiser import Optimiser


@pytest.fixture
def averaged() -> AveragedPredictor:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return AveragedPredictor(Classifier((4,), 3, hidden=(8,), closed=True), horizon=4.0)


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
    return x, (x[:, 0] > 0).long()


def steps(predictor: AveragedPredictor, n: int) -> list[list[torch.Tensor]]:
    """The learning network's weights after each of n steps."""
    trained = [p for p in predictor.parameters() if p.requires_grad]
    optimiser = Optimiser(trained, lr=0.05, clip=0.5, weight_decay=0.0)
    path = []
    for _ in range(n):
        optimiser.step(predictor.loss(*batch(), ()).sum(), penalise=False)
        predictor.stepped()
        path.append([p.detach().clone() for p in predictor.learning.parameters()])
    return path


def test_the_mean_is_that_of_a_plain_loop_over_the_steps(averaged):
    expected = [p.detach().clone() for p in averaged.learning.parameters()]
    for weights in steps(averaged, 6):
        expected = [0.75 * mean + 0.25 * weight for mean, weight in zip(expected, weights, strict=True)]
    torch.testing.assert_close([p.detach() for p in averaged.mean.parameters()], expected)


def test_answers_are_the_means_and_losses_the_learners(averaged):
    steps(averaged, 6)
    x, y = batch()
    assert torch.equal(averaged.predictive(x), averaged.mean.predictive(x))
    assert torch.equal(averaged.loss(x, y, ()), averaged.learning.loss(x, y, ()))
    assert not torch.equal(averaged.predictive(x), averaged.learning.predictive(x))


def test_the_mean_begins_where_sleep_ended(averaged):
    steps(averaged, 3)
    averaged.wake()
    x, _ = batch()
    assert torch.equal(averaged.predictive(x), averaged.learning.predictive(x))


def test_only_the_learning_network_is_trained_also_after_new_classes(averaged):
    enlarged = averaged.admit(5)
    trained = {id(p) for p in averaged.parameters() if p.requires_grad}
    assert trained == {id(p) for p in averaged.learning.parameters()}
    assert all(id(new) in trained for _, new in enlarged)
    assert averaged.predictive(batch()[0]).shape == (12, 5)


def test_what_is_left_of_a_pruned_one_are_the_features_of_the_mean(averaged):
    x, _ = batch()
    before = averaged.features(x, ())
    averaged.strip()
    assert all(torch.equal(a, b) for a, b in zip(averaged.features(x, ()), before, strict=True))
    assert {name.split(".")[0] for name, _ in averaged.named_parameters()} == {"mean"}
