"""The strength of the prior of means, the joining of choices, and components by their distance, in numbers."""

import math

import numpy as np
import pytest
import torch

from cndpm.experts.gaussian.choice import CovarianceChoice
from cndpm.experts.gaussian.densities import MeanIndex, prior_strength
from cndpm.experts.gaussian.discrimination import expected_accuracy
from cndpm.experts.gaussian.factor import Factor


def test_the_prior_is_as_strong_as_means_scatter_beyond_their_errors():
    counts, mean = np.array([50.0, 100.0, 200.0]), np.zeros(4)
    means = np.array([[2.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1.5]])
    spread = np.mean((means**2).mean(axis=1) - 1 / counts) * 3 / 2
    assert prior_strength(means * counts[:, None], counts, mean) == pytest.approx(1 / spread)


def test_the_prior_counts_for_at_most_a_tenth_of_a_component_and_for_one_sample_where_there_is_one():
    counts = np.array([40.0, 60.0])
    alike = np.full((2, 3), 0.01) * counts[:, None]
    assert prior_strength(alike, counts, np.full(3, 0.01)) == pytest.approx(5.0)
    assert prior_strength(alike[:1], counts[:1], np.zeros(3)) == 1.0
    assert prior_strength(alike, np.array([40.0, 0.0]), np.zeros(3)) == 1.0


def test_joined_choices_are_means_by_samples():
    one, other = (CovarianceChoice(shrinkage=None, tail=None, for_classes=False) for _ in range(2))
    one.density, other.density = 1e-4, 1e-2
    one._tail, other._tail = 8.0, None  # None: infinite, a Gaussian
    one.join(other, 100.0, 300.0)
    assert one.density == pytest.approx(1e-4**0.25 * 1e-2**0.75)
    assert one.tail == 32.0  # a quarter of 1 / 8


def test_foretold_accuracy_weighs_components_by_their_samples():
    """Two components that cannot be told apart, and one far away with nearly all of the samples, or with few."""
    means = torch.tensor([[0.0, 0.0], [0.01, 0.0], [90.0, 0.0]]).double()
    facts = {"degrees": 1e5, "shrinkage": 1e-6, "floor": 1e-6}
    for counts, expected in (([1e3, 1e3, 98e3], 0.99), ([49e3, 49e3, 2e3], 0.51)):
        accuracy = expected_accuracy(torch.eye(2).double(), means, torch.tensor(counts).double(), **facts)
        assert accuracy == pytest.approx(expected, abs=0.01)


def test_the_nearest_mean_is_nearest_by_distance_and_not_by_length():
    points = torch.tensor([[1.0, 0.0], [10.0, 0.0], [0.0, 5.0]])
    index, facts = MeanIndex(torch.eye(2), points), {"tail": math.inf, "count": 3.0, "degrees": 2.0, "shrinkage": 0.1}
    anchors = torch.zeros(5, 2).double()
    factor = Factor(cholesky=torch.eye(2), log_det=0.0, anchors=anchors, kappa=1.0, **facts)
    rows = torch.tensor([[1.2, 0.0], [8.0, 0.0], [0.0, 2.0]])
    assert index.nearest(rows, factor, torch.ones(3)).tolist() == [[0, 2, 1], [1, 0, 2], [0, 2, 1]]
