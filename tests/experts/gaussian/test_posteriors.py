"""Components made ready for questions, against the densities of scipy."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from cndpm.experts.gaussian.densities import Posteriors
from cndpm.experts.gaussian.factor import Factor


@pytest.mark.parametrize("tail", [math.inf, 5.0])
def test_densities_are_normal_or_students_with_the_posterior_mean_and_its_uncertainty(tail):
    rng = np.random.default_rng(0)
    lower, prior_mean, kappa = np.array([[2.0, 0.0], [0.5, 1.0]]), np.array([0.3, -0.7]), 1.5
    covariance, counts = lower @ lower.T, np.array([4.0, 9.0])
    sums, rows = rng.normal(size=(2, 2)) * counts[:, None], rng.normal(size=(6, 2)) * 3
    whitened = [np.linalg.solve(lower, part.T).T for part in (sums, prior_mean[None], rows)]
    anchors = torch.from_numpy(np.concatenate([whitened[0], np.zeros((1, 2)), whitened[1]]))
    factor = Factor(
        cholesky=torch.from_numpy(lower), log_det=math.log(np.linalg.det(covariance)), anchors=anchors, kappa=kappa,
        tail=tail, count=13.0, degrees=11.0, shrinkage=0.1,
    )  # fmt: skip
    made = Posteriors.of(factor, sums=factor.sums, counts=torch.from_numpy(counts))
    lengths, products = (whitened[2] ** 2).sum(axis=1, keepdims=True), whitened[2] @ made.means.numpy().T
    for j, n in enumerate(counts):
        mean, spread = (sums[j] + kappa * prior_mean) / (kappa + n), covariance * (1 + 1 / (kappa + n))
        if math.isinf(tail):
            expected = stats.multivariate_normal(mean, spread).logpdf(rows)
        else:  # of that covariance
            expected = stats.multivariate_t(mean, spread * (tail - 2) / tail, df=tail).logpdf(rows)
        np.testing.assert_allclose(made.log_prob(lengths, products)[:, j], expected, rtol=1e-10)
