import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import multivariate_normal, multivariate_t

from cndpm.experts.gaussian.factor import log_elliptical
from cndpm.experts.gaussian.own_covariance import (
    NormalInverseWishart,
    log_student_t,
    normal_inverse_wishart_from_sums,
)


def prior(d: int) -> NormalInverseWishart:
    psi = torch.eye(d, dtype=torch.float64) + 0.3
    return NormalInverseWishart(
        torch.full((d,), 0.5, dtype=torch.float64),
        torch.tensor(0.7, dtype=torch.float64),
        torch.tensor(d + 1.5, dtype=torch.float64),
        psi,
    )


def posterior(base: NormalInverseWishart, z: torch.Tensor) -> NormalInverseWishart:
    count = torch.tensor([float(len(z))], dtype=torch.float64)
    return normal_inverse_wishart_from_sums(base, count, z.sum(dim=0)[None], (z.T @ z)[None])


def predictive_log_prob(model: NormalInverseWishart, z: torch.Tensor) -> torch.Tensor:
    degrees, location, scale = model.predictive()
    return log_student_t(z, degrees.reshape(1), location.reshape(1, -1), torch.linalg.cholesky(scale).reshape(1, 2, 2))


def log_normaliser(model: NormalInverseWishart) -> torch.Tensor:
    d, log_det = model.n_dims, torch.logdet(model.psi)
    log_gamma = torch.mvlgamma(model.nu / 2, d)
    return log_gamma - 0.5 * model.nu * (log_det - d * math.log(2)) - 0.5 * d * model.kappa.log()


def log_evidence(base: NormalInverseWishart, after: NormalInverseWishart) -> torch.Tensor:
    """Returns log p(data) where `after` is the prior `base` after the data; a difference of two log normalisers."""
    n = after.kappa - base.kappa
    return log_normaliser(after) - log_normaliser(base) - 0.5 * n * base.n_dims * math.log(2 * math.pi)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.integers(0, 10_000))
def test_evidence_equals_the_product_of_predictive_densities(n, seed):
    z = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 + 1
    chain = sum(
        float(predictive_log_prob(posterior(prior(2), z[:i]) if i else prior(2), z[i : i + 1])) for i in range(n)
    )
    assert float(log_evidence(prior(2), posterior(prior(2), z))) == pytest.approx(chain, rel=1e-9)


def test_student_t_agrees_with_scipy():
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    scale = torch.eye(3, dtype=torch.float64) * 1.5 + 0.2
    location = torch.tensor([[0.1, 0.2, 0.3]], dtype=torch.float64)
    ours = log_student_t(z, torch.tensor([4.0], dtype=torch.float64), location, torch.linalg.cholesky(scale)[None])
    theirs = multivariate_t(location[0].numpy(), scale.numpy(), df=4.0).logpdf(z.numpy())
    torch.testing.assert_close(ours[:, 0], torch.tensor(theirs))


def test_elliptical_densities_agree_with_scipy_and_keep_the_covariance():
    z = torch.randn(6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    sigma = torch.eye(3, dtype=torch.float64) * 1.5 + 0.2
    distance, log_det = (z @ torch.linalg.inv(sigma) * z).sum(dim=1), torch.logdet(sigma)
    scale = torch.tensor(1.3, dtype=torch.float64)
    heavy = multivariate_t(shape=(1.3 * sigma * 6 / 8).numpy(), df=8).logpdf(z.numpy())
    normal = multivariate_normal(cov=(1.3 * sigma).numpy()).logpdf(z.numpy())
    torch.testing.assert_close(log_elliptical(distance, log_det, 3, scale, 8.0), torch.tensor(heavy))
    torch.testing.assert_close(log_elliptical(distance, log_det, 3, scale, math.inf), torch.tensor(normal))


def test_predictive_density_integrates_to_one():
    z = torch.randn(12, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    model = posterior(prior(2), z)

    def density(a: float, b: float) -> float:
        # The plane in polar coordinates of a tangent-mapped radius, so that heavy tails are inside.
        radius = math.tan(a)
        point = torch.tensor([[radius * math.cos(b), radius * math.sin(b)]], dtype=torch.float64)
        return math.exp(float(predictive_log_prob(model, point))) * radius / math.cos(a) ** 2

    total, _ = integrate.dblquad(density, 0, 2 * math.pi, 0, math.pi / 2 - 1e-9, epsabs=1e-5, epsrel=1e-5)
    assert total == pytest.approx(1.0, abs=1e-4)
