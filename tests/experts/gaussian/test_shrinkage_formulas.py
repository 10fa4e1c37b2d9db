"""Shrinkage and tails by their formulas, on matrices that numpy and scipy can check."""

import math

import pytest
import torch
from scipy.stats import multivariate_normal, multivariate_t

from cndpm.experts.chunks import Samples
from cndpm.experts.gaussian.choice import CovarianceChoice
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.experts.gaussian.shrinkage import (
    TAILS,
    choose_shrinkage,
    held_out_log_likelihood,
    mean_variance,
    oracle_shrinkage,
    shrunk_covariance,
)
from cndpm.experts.gaussian.statistics import SharedStatistics


def scatter(n: int = 30, d: int = 4) -> torch.Tensor:
    rows = torch.randn(n, d, generator=torch.Generator().manual_seed(0)).double() * torch.arange(1, d + 1)
    return rows.T @ rows


def test_a_shrunk_covariance_lies_between_the_datas_and_one_of_its_mean_variance():
    w, degrees, shrinkage = scatter(), 29.0, 0.3
    expected = 0.7 * w / degrees + 0.3 * torch.eye(4).double() * torch.trace(w) / (4 * degrees)
    torch.testing.assert_close(torch.tril(shrunk_covariance(w.clone(), degrees, shrinkage)), torch.tril(expected))
    assert mean_variance(w, degrees) == pytest.approx(float(torch.trace(w)) / (4 * degrees))


def test_the_oracle_approximating_shrinkage_is_that_of_chen_and_others():
    w, degrees, d = scatter(), 29.0, 4
    s = w / degrees
    square, trace = float(torch.trace(s @ s)), float(torch.trace(s))
    expected = ((1 - 2 / d) * square + trace**2) / ((degrees + 1 - 2 / d) * (square - trace**2 / d))
    assert 0 < expected < 1
    assert oracle_shrinkage(torch.tril(w), degrees) == pytest.approx(expected)
    assert oracle_shrinkage(1e200 * torch.tril(w), degrees) == 1.0  # whose square is no number


@pytest.mark.parametrize("tail", [4.0, 16.0, math.inf])
def test_the_tail_is_the_one_under_which_held_out_samples_are_likeliest(tail):
    """The density has the same covariance whatever its tail, so the shape of t is (tail - 2) / tail of it."""
    w, degrees = 400.0 * torch.eye(3).double(), 400.0
    draws = (
        multivariate_normal(cov=torch.eye(3)) if math.isinf(tail) else multivariate_t([0] * 3, (tail - 2) / tail, tail)
    )
    rows = torch.from_numpy(draws.rvs(4000, random_state=1))
    densities = {
        each: (
            multivariate_normal(cov=torch.eye(3))
            if math.isinf(each)
            else multivariate_t([0] * 3, (each - 2) / each * torch.eye(3), each)
        )
        .logpdf(rows)
        .mean()
        for each in TAILS
    }
    best = max(densities, key=densities.get)
    assert held_out_log_likelihood(w, degrees, rows, 1e-6) == (pytest.approx(densities[best], rel=1e-4), best)
    assert (math.inf, 256.0, 128.0, 64.0, 32.0, 16.0, 8.0, 4.0) == TAILS


def test_half_powers_of_ten_down_to_a_millionth_are_tried():
    for exponent in range(13):
        best = 10 ** (-exponent / 2)
        found = choose_shrinkage(lambda value, best=best: -abs(math.log(value / best)), start=1e-2)
        assert found == pytest.approx(best)


def test_predictions_use_the_geometric_mean_of_both_shrinkages():
    choice = CovarianceChoice(shrinkage=None, tail=None, for_classes=True)
    choice.density, choice.accuracy = 0.01, 0.09
    assert choice.classes == pytest.approx(0.03)


@pytest.mark.parametrize(("n_rows", "is_foretold"), [(12, False), (13, False), (14, True)])
def test_with_fewer_samples_than_features_classes_take_half_a_decade_more_than_densities(n_rows, is_foretold):
    statistics = SharedStatistics(torch.zeros(12))
    statistics.add_components(2)
    rows = torch.randn(n_rows, 12, generator=torch.Generator().manual_seed(0)).double() * torch.logspace(-2, 1, 12)
    statistics.add(rows, torch.eye(2).double()[torch.arange(n_rows) % 2])  # n_rows - 2 degrees of freedom
    choice = CovarianceChoice(shrinkage=None, tail=math.inf, for_classes=True)
    choice.judge(statistics)
    assert (choice.state_dict()["accuracy_judged_at"] == n_rows) == is_foretold
    if not is_foretold:
        assert choice.density < 0.5
        assert choice.classes == pytest.approx(min(math.sqrt(choice.density), math.sqrt(10) * choice.density))


def test_too_few_rows_to_hold_any_out_have_the_closed_forms_shrinkage():
    statistics = SharedStatistics(torch.zeros(3))
    statistics.add_components(1)
    rows = torch.randn(7, 3, generator=torch.Generator().manual_seed(0)).double()
    statistics.add(rows, torch.ones(7, 1).double())
    choice = CovarianceChoice(shrinkage=None, tail=None, for_classes=False)
    choice.judge(statistics)
    assert choice.density == oracle_shrinkage(statistics.within_scatter(), 6.0)


def test_the_choice_is_made_again_when_the_data_has_grown_by_half_a_power_of_ten():
    gaussians = SharedGaussians(torch.zeros(2), lambda samples: samples.x)
    gaussians.add_components(1)
    x = torch.randn(500, 2, generator=torch.Generator().manual_seed(0))
    gaussians.found(x[:100], torch.ones(100, 1).double())
    judged = {}
    for start in range(100, 500, 20):
        gaussians.add(Samples(x[start : start + 20]), torch.ones(20, 1).double())
        judged[start + 20] = gaussians.choice.state_dict()["density_judged_at"]
    changed = [count for count, at in judged.items() if at != 100.0]
    assert min(changed) == pytest.approx(317, abs=20) and min(changed) >= 316
