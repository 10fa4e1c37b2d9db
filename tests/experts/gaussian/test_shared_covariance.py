import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from cndpm.experts.chunks import Samples
from cndpm.experts.gaussian.choice import CovarianceChoice
from cndpm.experts.gaussian.factor import log_elliptical
from cndpm.experts.gaussian.provisional import LOG_FLOOR, ProvisionalGaussians
from cndpm.experts.gaussian.shared_covariance import SharedGaussians


def blobs(n: int, d: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(3, (n,), generator=generator)
    mixing = torch.randn(d, d, generator=torch.Generator().manual_seed(99))
    z = torch.randn(n, d, generator=generator) @ mixing + 4 * label[:, None]
    return z, torch.nn.functional.one_hot(label, 3).double()


def features_of(samples: Samples) -> torch.Tensor:
    return samples.x


def density_of_new(gaussians: SharedGaussians, z: torch.Tensor) -> torch.Tensor:
    """The density of "new" by the exact covariance, (B,)."""
    factor = gaussians.answers.factor(exact=True)
    whitened = factor.whiten(gaussians.statistics.shift(z))
    distance = (whitened - factor.mean).square().sum(dim=1)
    return log_elliptical(distance, factor.log_det, z.shape[1], torch.tensor(1 + 1 / factor.kappa), factor.tail)


class InDouble(SharedGaussians):
    """Routes in double precision, as closed forms do."""

    routing_dtype = torch.float64


def fitted(d: int = 4, **options) -> tuple[SharedGaussians, torch.Tensor, torch.Tensor]:
    z, weights = blobs(200, d, 0)
    gaussians = InDouble(z.mean(dim=0), features_of, CovarianceChoice(**options))
    gaussians.add_components(3)
    gaussians.found(z, weights)
    return gaussians, z, weights


def test_predictive_density_is_the_closed_form():
    gaussians, z, weights = fitted(shrinkage=0.1, tail=math.inf)
    scores, new = gaussians.answers.log_prob(Samples(z[:5]), exact=True), density_of_new(gaussians, z[:5])
    z, counts = z.double(), weights.sum(dim=0)
    means = (weights.T @ z) / counts[:, None]
    scatter = sum((z - means[j]).T @ ((z - means[j]) * weights[:, j, None]) for j in range(3))
    pooled = scatter / (200 - 3)
    sigma = 0.9 * pooled + 0.1 * pooled.diagonal().mean() * torch.eye(4)
    kappa, prior_mean = float(gaussians.answers.factor(exact=True).kappa), z.mean(dim=0)
    for j in range(3):
        kappa_n = kappa + counts[j]
        mean = (kappa * prior_mean + counts[j] * means[j]) / kappa_n
        expected = multivariate_normal(mean.numpy(), ((1 + 1 / kappa_n) * sigma).numpy()).logpdf(z[:5].numpy())
        torch.testing.assert_close(scores[:, j], torch.tensor(expected))
    expected = multivariate_normal(prior_mean.numpy(), ((1 + 1 / kappa) * sigma).numpy()).logpdf(z[:5].numpy())
    torch.testing.assert_close(new, torch.tensor(expected))


@pytest.mark.parametrize("tail", [math.inf, 8.0])
def test_predictive_density_integrates_to_one(tail):
    gaussians, z, _ = fitted(d=2, tail=tail)
    grid = torch.linspace(-40, 60, 801, dtype=torch.float64)
    points = torch.cartesian_prod(grid, grid)
    scores, new = gaussians.answers.log_prob(Samples(points), exact=True), density_of_new(gaussians, points)
    cell = float(grid[1] - grid[0]) ** 2
    totals = torch.cat([scores.exp().sum(dim=0), new.exp().sum()[None]]) * cell
    torch.testing.assert_close(totals, torch.ones(4, dtype=torch.float64), atol=1e-3, rtol=0)
    assert z.shape[1] == 2


def test_prediction_refactorises_only_what_has_changed():
    gaussians, z, weights = fitted()
    gaussians.answers.log_prob(Samples(z[:5]), exact=True)
    before = gaussians.n_factorisations
    for _ in range(3):
        gaussians.answers.log_prob(Samples(z[5:9]), exact=True)
    assert gaussians.n_factorisations == before
    gaussians.add(Samples(z[:1]), weights[:1])
    gaussians.answers.log_prob(Samples(z[:5]), exact=True)
    assert gaussians.n_factorisations == before + 1


def test_routing_between_renewals_has_fresh_means():
    gaussians, z, weights = fitted(d=64)
    count = gaussians.routing().count
    far = torch.full((40, 64), 30.0)
    label = torch.zeros(40, 3, dtype=torch.float64)
    label[:, 0] = 1
    before = float(gaussians.routing_log_prob(Samples(far[:1]))[0][0, 0])
    gaussians.add(Samples(far), label)
    after = float(gaussians.routing_log_prob(Samples(far[:1]))[0][0, 0])
    assert gaussians.routing().count == count
    assert after > before
    assert len(z) == len(weights)


def test_a_renewal_is_not_put_off_by_rounding():
    gaussians, z, weights = fitted()
    before = gaussians.routing()
    gaussians.add(Samples(z[:10]), weights[:10] * (1 - 1e-12))
    assert gaussians.routing() is not before


def test_predicting_has_no_effect_on_learning():
    asked, z, weights = fitted()
    silent, _, _ = fitted()
    for start in range(0, 100, 10):
        part = slice(start, start + 10)
        asked.answers.log_prob(Samples(z[:7]), exact=start % 20 == 0)
        for each in (asked, silent):
            each.add(Samples(z[part]), weights[part])
    for mine, theirs in zip(asked.routing_log_prob(Samples(z)), silent.routing_log_prob(Samples(z)), strict=True):
        assert np.array_equal(mine, theirs)


def test_tails_are_found_in_held_out_data():
    generator = torch.Generator().manual_seed(6)
    z = torch.randn(1000, 20, generator=generator)
    factor = torch.rand(1000, 1, generator=generator) + 0.2
    tails = []
    for rows in (z, z / factor):
        gaussians = SharedGaussians(rows.mean(dim=0), features_of)
        gaussians.add_components(1)
        gaussians.found(rows, torch.ones(1000, 1, dtype=torch.float64))
        tails.append(gaussians.choice.tail)
    assert tails[0] >= 64
    assert tails[1] <= 16


@pytest.mark.parametrize("n", [60, 2000])
def test_shrinkage_is_larger_where_data_is_scarce(n):
    generator = torch.Generator().manual_seed(5)
    z = torch.randn(n, 50, generator=generator) * torch.linspace(0.1, 3, 50)
    gaussians = SharedGaussians(z.mean(dim=0), features_of)
    gaussians.add_components(1)
    gaussians.found(z, torch.ones(n, 1, dtype=torch.float64))
    assert (gaussians.choice.density >= 0.03) == (n == 60)


@pytest.mark.parametrize("tail", [math.inf, 8.0])
def test_routing_by_inner_products_is_the_density_of_every_component(tail):
    gaussians, z, weights = fitted(d=16, tail=tail)
    gaussians.add(Samples(z[:3]), weights[:3])
    factor, counts = gaussians.routing(), gaussians.counts
    whitened = factor.whiten(gaussians.statistics.shift(z[:7]))
    scores, new = gaussians.routing_log_prob(Samples(z[:7]))
    for j in range(4):
        n, total = (counts[j], factor.sums[j]) if j < 3 else (torch.zeros(()), torch.zeros(16))
        kappa = n.double() + factor.kappa
        distance = (whitened - (total + factor.kappa * factor.mean) / kappa).square().sum(dim=1)
        expected = log_elliptical(distance, factor.log_det, 16, 1 + 1 / kappa, tail)
        np.testing.assert_allclose(scores[:, j] if j < 3 else new, expected, rtol=1e-7)


def test_a_group_of_a_memory_is_as_dense_as_a_component_made_of_it():
    gaussians, z, _ = fitted(shrinkage=0.1, tail=math.inf)
    memory, labels = z[:30] + 5, torch.arange(30) % 2
    factor = gaussians.answers.factor(exact=True)
    provisional = ProvisionalGaussians(gaussians, Samples(memory), labels, exact=True, n_classes=2, log_volume=0.0)
    found = provisional.log_density(Samples(z[:6]))
    densities = []
    covariance = factor.cholesky @ factor.cholesky.T
    prior_mean = gaussians.statistics.origin + factor.cholesky @ factor.mean
    for g in range(2):
        mean = (memory[g::2].double().sum(dim=0) + factor.kappa * prior_mean) / (15 + factor.kappa)
        density = multivariate_normal(mean.numpy(), ((1 + 1 / (15 + factor.kappa)) * covariance).numpy())
        densities.append(density.logpdf(z[:6].double().numpy()) - math.log(2))
    np.testing.assert_allclose(found, np.logaddexp(*densities))
    shares = np.maximum(np.stack(densities) - np.logaddexp(*densities), LOG_FLOOR)
    np.testing.assert_allclose(provisional.predictive(Samples(z[:6])).T, shares, atol=1e-9)


def test_margins_drift_as_those_of_samples_do():
    """A fourth component far away moves the prior, and with it what "new" is like, once routing is renewed."""
    z, weights = blobs(3000, 10, 0)
    weights = torch.nn.functional.pad(weights, (0, 1))
    gaussians = InDouble(z.mean(dim=0), features_of, CovarianceChoice(tail=math.inf))
    gaussians.add_components(4)
    gaussians.found(z[:2000], weights[:2000])
    assert gaussians.margin_drift() is None
    new, own = z[2000:], weights[2000:].argmax(dim=1)

    def margin() -> torch.Tensor:
        scores, of_new = gaussians.routing_log_prob(Samples(new))
        margins = [(scores[own == j, j] - of_new[own == j]).mean() for j in range(3)]
        return torch.tensor(margins, dtype=torch.float64)

    before = margin()
    far = blobs(2000, 10, 1)[0] + torch.linspace(20, 60, 10) - 4 * blobs(2000, 10, 1)[1].argmax(dim=1)[:, None]
    gaussians.add(Samples(far), torch.tensor([0.0, 0, 0, 1]).double().expand(2000, 4).clone())
    drift, moved = gaussians.margin_drift(), margin() - before
    assert gaussians.margin_drift() is None
    assert float(moved.abs().max()) > 3
    torch.testing.assert_close(drift[:3], moved, rtol=0.1, atol=0.5)


def test_the_inverse_of_a_factor_whitens_as_solving_does():
    gaussians, z, _ = fitted(d=6)
    factor = gaussians.routing()
    shifted = gaussians.statistics.shift(z[:20])
    torch.testing.assert_close(shifted @ factor.inverse().T, factor.whiten(shifted))
    assert factor.inverse() is factor.inverse()
