"""Answers between two renewals: the covariance of the last one, the means of now, and bits that depend on neither when
nor how often one asked."""

import math

import pytest
import torch

from asking import found
from cndpm.experts.chunks import Samples
from cndpm.experts.features import IdentityFeatures
from cndpm.experts.gaussian import GaussianBank
from cndpm.experts.gaussian.choice import CovarianceChoice
from cndpm.experts.gaussian.discrimination import expected_distance
from cndpm.experts.gaussian.prediction import LaggingFactor, factorise, widen
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.experts.gaussian.statistics import SharedStatistics
from cndpm.state import load_state, save_state

D = 12


def features_of(samples: Samples) -> torch.Tensor:
    return samples.x


def blobs(n: int, seed: int, n_components: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows (n, D) of uneven variances, and one-hot weights (n, n_components)."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(n_components, (n,), generator=generator)
    mixing = torch.randn(D, D, generator=torch.Generator().manual_seed(99)) * torch.logspace(-1, 0.3, D)
    z = torch.randn(n, D, generator=generator) @ mixing + 1.5 * torch.nn.functional.one_hot(label % D, D)
    return z, torch.nn.functional.one_hot(label, n_components).double()


def fitted(n: int = 400, **options) -> SharedGaussians:
    z, weights = blobs(n, 0)
    gaussians = SharedGaussians(z.mean(dim=0), features_of, CovarianceChoice(**options))
    gaussians.add_components(3)
    gaussians.found(z, weights)
    return gaussians


def teach(gaussians: SharedGaussians, first: int, last: int) -> None:
    """Learns one sample after another, fewer than a renewal waits for."""
    z, weights = blobs(60, 7)
    weights = torch.nn.functional.pad(weights, (0, len(gaussians.counts) - 3))
    for i in range(first, last):
        gaussians.add(Samples(z[i : i + 1]), weights[i : i + 1])


def whitened_densities(factor, gaussians: SharedGaussians, z: torch.Tensor) -> torch.Tensor:
    """Log densities (B, J) of normal components by definition: dense covariance, no inner products."""
    lower = factor.cholesky.double()
    sigma, counts = lower @ lower.T, gaussians.counts
    prior = gaussians.statistics.sums.sum(dim=0) / counts.sum()
    rows, scores = z.double() - gaussians.statistics.origin, []
    for j in range(len(counts)):
        kappa = float(counts[j]) + factor.kappa
        mean = (gaussians.statistics.sums[j] + factor.kappa * prior) / kappa
        normal = torch.distributions.MultivariateNormal(mean, (1 + 1 / kappa) * sigma)
        scores.append(normal.log_prob(rows))
    return torch.stack(scores, dim=1)


@pytest.mark.parametrize("for_classes", [False, True])
@pytest.mark.parametrize("shrinkage", [1e-4, 1e-2, 0.0316, 0.1, 0.5, 1.0])
def test_at_a_renewal_the_factor_is_the_exact_one_at_any_shrinkage(shrinkage, for_classes):
    gaussians = fitted(shrinkage=0.02, tail=math.inf)
    routing = gaussians.routing()
    assert routing.shrinkage == 0.02
    lagging = LaggingFactor(routing, shrinkage=shrinkage, for_classes=for_classes).factor(gaussians.statistics)
    exact = gaussians.factorise(shrinkage, for_classes=for_classes)
    z = blobs(50, 3)[0]
    torch.testing.assert_close(lagging.kappa, exact.kappa, rtol=1e-4, atol=0)
    ours, theirs = (whitened_densities(factor, gaussians, z) for factor in (lagging, exact))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)


def test_at_a_renewal_lagging_answers_are_exact_to_the_rounding_of_routing():
    gaussians = fitted()
    z = blobs(50, 3)[0]
    lagging, exact = (gaussians.answers.log_prob(Samples(z), exact=exact) for exact in (False, True))
    assert not torch.equal(lagging, exact)
    torch.testing.assert_close(lagging, exact, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("for_classes", [False, True])
def test_between_renewals_the_covariance_is_old_and_the_means_are_not(for_classes):
    gaussians = fitted(tail=math.inf, for_classes=for_classes)
    statistics, shrinkage = gaussians.statistics, gaussians.choice.classes
    scatter, degrees = statistics.within_scatter(), statistics.degrees_of_freedom
    scatter = scatter.tril() + scatter.tril(-1).T
    floor = shrinkage * float(scatter.diagonal().mean()) / degrees
    sigma = (1 - shrinkage) * scatter / degrees + floor * torch.eye(D, dtype=torch.float64)
    if gaussians.choice.for_classes:
        distance = expected_distance(torch.linalg.cholesky(sigma), degrees=degrees, shrinkage=shrinkage, floor=floor)
        sigma = sigma * distance / D
    renewed_at = gaussians.routing().count
    teach(gaussians, 0, 18)
    assert gaussians.routing().count == renewed_at
    z = blobs(50, 3)[0]
    factor = gaussians.answers.factor(exact=False)
    torch.testing.assert_close(factor.cholesky.double() @ factor.cholesky.double().T, sigma, rtol=1e-4, atol=1e-5)
    brute = LaggingOracle(sigma, factor.kappa)
    answers = gaussians.answers.log_prob(Samples(z), exact=False)
    torch.testing.assert_close(answers, whitened_densities(brute, gaussians, z), rtol=1e-4, atol=1e-3)
    assert (answers - gaussians.answers.log_prob(Samples(z), exact=True)).abs().max() > 1e-2


class LaggingOracle:
    """A covariance and a prior strength."""

    def __init__(self, sigma: torch.Tensor, kappa: float):
        self.cholesky, self.kappa = torch.linalg.cholesky(sigma), kappa


def test_bits_do_not_depend_on_when_one_asked(tmp_path):
    z = blobs(40, 3)[0]
    often, once, saved = fitted(), fitted(), fitted()
    for i in range(15):
        for each in (often, once, saved):
            teach(each, i, i + 1)
        often.answers.log_prob(Samples(z[:7]), exact=False)
        if i % 4 == 0:
            often.answers.log_prob(Samples(z[:7]), exact=True)
        if i % 5 == 2:
            save_state(tmp_path / f"{i}", saved.state_dict(), kind="gaussians")
            saved = fitted()
            saved.load_state_dict(load_state(tmp_path / f"{i}", kind="gaussians"))
    expected = once.answers.log_prob(Samples(z), exact=False)
    assert torch.equal(often.answers.log_prob(Samples(z), exact=False), expected)
    assert torch.equal(saved.answers.log_prob(Samples(z), exact=False), expected)


def test_many_components_are_followed_one_by_one():
    """More than are whitened together, of which few change."""
    z, weights = blobs(400, 0, n_components=20)
    often, once = (SharedGaussians(z.mean(dim=0), features_of, CovarianceChoice(tail=math.inf)) for _ in range(2))
    for each in (often, once):
        each.add_components(20)
        each.found(z, weights)
    for i in range(9):
        often.answers.factor(exact=False)
        for each in (often, once):
            each.add(Samples(z[i : i + 1] + 1), weights[i : i + 1])
    assert torch.equal(often.answers.factor(exact=False).anchors, once.answers.factor(exact=False).anchors)
    expected = whitened_densities(once.answers.factor(exact=False), once, z[:30])
    torch.testing.assert_close(often.answers.log_prob(Samples(z[:30]), exact=False), expected, rtol=1e-4, atol=1e-3)


def test_a_factor_that_was_given_out_keeps_its_means():
    gaussians = fitted()
    factor = gaussians.answers.factor(exact=False)
    assert gaussians.answers.factor(exact=False) is factor
    before = factor.anchors.clone()
    teach(gaussians, 0, 5)
    assert gaussians.answers.factor(exact=False) is not factor
    assert torch.equal(factor.anchors, before)


def test_components_that_come_between_renewals_are_answered_for():
    z, asked, silent = blobs(40, 3)[0], fitted(tail=math.inf), fitted(tail=math.inf)
    asked.answers.log_prob(Samples(z), exact=False)
    for each in (asked, silent):
        each.add_components(2)
        each.add(Samples(z[:3] + 4), torch.eye(5, dtype=torch.float64)[[3, 3, 4]])
    answers = asked.answers.log_prob(Samples(z), exact=False)
    assert answers.shape == (40, 5)
    assert torch.equal(answers, silent.answers.log_prob(Samples(z), exact=False))
    expected = whitened_densities(asked.answers.factor(exact=False), asked, z)
    torch.testing.assert_close(answers, expected, rtol=1e-4, atol=1e-3)


def test_components_that_were_merged_are_answered_for_as_one():
    z, asked, silent = blobs(40, 3)[0], fitted(tail=math.inf), fitted(tail=math.inf)
    asked.answers.log_prob(Samples(z), exact=False)
    for each in (asked, silent):
        teach(each, 0, 5)
        each.merge_components([(2, 0)], [0, 1])
    answers = asked.answers.log_prob(Samples(z), exact=False)
    assert torch.equal(answers, silent.answers.log_prob(Samples(z), exact=False))
    # Merging renews, so that nothing lags.
    torch.testing.assert_close(answers, asked.answers.log_prob(Samples(z), exact=True), rtol=1e-4, atol=1e-3)


def test_a_pair_that_is_swapped_by_a_merge_is_not_mistaken_for_what_was_there():
    """Components of equal counts: only their sums tell them apart."""
    z = blobs(40, 3)[0]
    weights = torch.nn.functional.one_hot(torch.arange(40) % 2).double()
    gaussians = SharedGaussians(z.mean(dim=0), features_of, CovarianceChoice(tail=math.inf))
    gaussians.add_components(2)
    gaussians.found(z + 3 * weights[:, :1], weights)
    before = gaussians.answers.log_prob(Samples(z), exact=False)
    gaussians.merge_components([], [1, 0])
    torch.testing.assert_close(
        gaussians.answers.log_prob(Samples(z), exact=False), before.flip(1), rtol=1e-4, atol=1e-3
    )


def test_answers_between_batches_factorise_nothing():
    gaussians, z = fitted(), blobs(40, 3)[0]
    gaussians.answers.log_prob(Samples(z), exact=False)
    before = gaussians.n_factorisations
    for i in range(18):
        teach(gaussians, i, i + 1)
        gaussians.answers.log_prob(Samples(z), exact=False)
    assert gaussians.n_factorisations == before
    gaussians.answers.log_prob(Samples(z), exact=True)
    assert gaussians.n_factorisations == before + 1


def test_a_renewal_brings_the_covariance_of_answers_up_to_date():
    gaussians, z = fitted(), blobs(40, 3)[0]
    teach(gaussians, 0, 15)
    more, weights = blobs(60, 8)
    old = gaussians.routing()
    gaussians.add(Samples(2 * more), weights)
    assert gaussians.routing() is not old
    answers, exact = (gaussians.answers.log_prob(Samples(z), exact=exact) for exact in (False, True))
    torch.testing.assert_close(answers, exact, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("for_classes", [False, True])
def test_where_routing_sees_a_sphere_answers_do_too(for_classes):
    """Nothing of the data's covariance is left at shrinkage 1, so none can be brought back."""
    gaussians = fitted(shrinkage=1.0, tail=math.inf)
    routing = gaussians.routing()
    factor = LaggingFactor(routing, shrinkage=0.3, for_classes=for_classes).factor(gaussians.statistics)
    torch.testing.assert_close(factor.cholesky, routing.cholesky)


class CountingMap(IdentityFeatures):
    """Counts the rows whose features are computed, call by call."""

    def __init__(self):
        super().__init__()
        self.sizes: list[int] = []

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.sizes.append(len(x))
        return super().__call__(x)


@pytest.mark.parametrize("covariance", ["shared", "own"])
def test_features_of_a_chunk_are_computed_once_for_evidence_learning_and_answers(covariance):
    bank = GaussianBank(CountingMap(), n_classes=3, covariance=covariance)
    z, weights = blobs(700, 0)
    y = weights.argmax(dim=1)
    found(bank, z[:60], y[:60])
    bank.feature_map.sizes.clear()
    for i, samples in enumerate(bank.open(z, 10)):
        labels = y[10 * i : 10 * i + 10]
        bank.evidence(samples, labels)
        bank.predictive(samples, exact=False), bank.log_density(samples, exact=False)
        bank.learn(samples, labels, torch.ones(10, 1, dtype=torch.float64))
    assert bank.feature_map.sizes == [500, 200]


def test_where_nothing_varies_within_components_the_width_is_left_alone():
    eye = torch.eye(3, dtype=torch.float64)
    assert torch.equal(widen(eye.clone(), degrees=1.0, shrinkage=0.1, floor=1.0), eye)
    assert not torch.equal(widen(eye.clone(), degrees=10.0, shrinkage=0.1, floor=0.1), eye)


def test_a_covariance_that_rounding_left_indefinite_is_shrunk_further():
    statistics = SharedStatistics(torch.zeros(2))
    statistics.add_components(1)
    statistics.add(torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64), torch.ones(2, 1, dtype=torch.float64))
    statistics.flush()
    statistics._second_moment.sub_(1e-3 * torch.eye(2, dtype=torch.float64) * statistics._second_moment.diagonal())
    factor = factorise(statistics, shrinkage=1e-6, tail=math.inf, for_classes=False)
    assert factor.shrinkage > 1e-6
    assert bool(torch.isfinite(factor.cholesky).all())
