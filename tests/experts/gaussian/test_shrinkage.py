import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.gaussian.shrinkage import choose_shrinkage, held_out_log_likelihood, shrunk_covariance


@given(st.floats(-6, 0), st.floats(-6, 0))
def test_the_walk_finds_the_top_of_a_hill_from_anywhere(peak, start):
    chosen = choose_shrinkage(lambda value: -abs(math.log10(value) - peak), 10**start)
    assert abs(math.log10(chosen) - peak) <= 0.25 + 1e-9


def test_held_out_likelihood_is_that_of_the_normal():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(30, 3, generator=generator, dtype=torch.float64)
    scatter, degrees = z.T @ z, torch.tensor(30.0)
    sigma = shrunk_covariance(scatter.clone(), degrees, 0.2)
    expected = torch.distributions.MultivariateNormal(torch.zeros(3, dtype=torch.float64), sigma).log_prob(z).mean()
    assert held_out_log_likelihood(scatter, degrees, z, 0.2, (math.inf,))[0] == pytest.approx(float(expected))


def test_constant_data_has_a_factor():
    covariance = shrunk_covariance(torch.zeros(3, 3, dtype=torch.float64), torch.tensor(5.0), 0.01)
    assert torch.linalg.cholesky_ex(covariance).info == 0
