import pytest
import torch
from scipy.stats import kstest, multivariate_t

from cndpm.experts.chunks import Samples
from cndpm.experts.gaussian.own_covariance import OwnGaussians


def test_one_value_many_orders_of_magnitude_larger_than_all_others_leaves_densities():
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gaussians = OwnGaussians(x, lambda samples: samples.x)
    gaussians.add_components(1)
    gaussians.found(x, torch.ones(40, 1))
    huge = torch.tensor([[1e15, 1.0, 1e15]], dtype=torch.float64)
    gaussians.add(Samples(huge.repeat(3, 1)), torch.ones(3, 1))
    assert bool(torch.isfinite(gaussians.log_prob(Samples(x))).all())


def test_the_prior_expects_a_tenth_of_the_memorys_variance_around_its_mean():
    x = torch.randn(500, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 4 + 7
    gaussians = OwnGaussians(x, lambda samples: samples.x)
    prior, d = gaussians.prior, 3
    expected = prior.psi / (prior.nu - d - 1)  # of an inverse Wishart distribution
    torch.testing.assert_close(expected, torch.diag(0.1 * x.var(dim=0, correction=0)))


def drawn(n, seed):
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 + 5


def taught(memory, *parts):
    """Components that were asked between the parts, each rows and their weights, (n, 3) and (n, J)."""
    gaussians = OwnGaussians(memory, lambda samples: samples.x)
    gaussians.add_components(parts[0][1].shape[1])
    for rows, weights in parts:
        gaussians.add(Samples(rows), weights)
        gaussians.log_prob(Samples(rows))
    return gaussians


def by_hand(gaussians, memory, rows, weights, asked):
    """Returns log densities (n,) of a component of weighted rows: the textbook's posterior, about the memory's mean."""
    prior, z, n = gaussians.prior, rows - memory.mean(dim=0), weights.sum()
    mean = (weights[:, None] * z).sum(dim=0) / n
    scatter = sum(w * torch.outer(one - mean, one - mean) for w, one in zip(weights, z, strict=True))
    psi = prior.psi + scatter + prior.kappa * n / (prior.kappa + n) * torch.outer(mean, mean)
    kappa, degrees = prior.kappa + n, float(prior.nu + n - 2)
    location = n * mean / kappa + memory.mean(dim=0)
    return multivariate_t(location, psi * (kappa + 1) / (kappa * degrees), degrees).logpdf(asked)


def test_densities_are_those_of_all_weighted_rows_though_they_came_in_parts():
    memory, rows, asked = drawn(50, 0), drawn(60, 1), drawn(10, 2)
    weights = torch.rand(60, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    gaussians = taught(memory, (rows[:20], weights[:20]), (rows[20:], weights[20:]))
    found = gaussians.log_prob(Samples(asked)).T
    for j in range(2):
        assert found[j].numpy() == pytest.approx(by_hand(gaussians, memory, rows, weights[:, j], asked), rel=1e-9)


def test_a_merged_component_is_that_of_all_rows_of_both():
    memory, rows, asked = drawn(50, 0), drawn(60, 1), drawn(10, 2)
    weights = torch.rand(60, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    both, one = taught(memory, (rows, weights)), taught(memory, (rows, weights.sum(dim=1, keepdim=True)))
    both.merge_components([(1, 0)], [0])
    torch.testing.assert_close(both.log_prob(Samples(asked)), one.log_prob(Samples(asked)))


def test_numbers_kept_are_those_of_the_prior_and_of_half_of_every_symmetric_matrix():
    gaussians = taught(drawn(50, 0), (drawn(20, 1), torch.ones(20, 2, dtype=torch.float64)))
    assert gaussians.n_numbers_kept == (3 + 3 + 2) + 2 * (1 + 3 + 6)


def test_components_about_another_origin_are_not_taken_over():
    memory = torch.arange(64.0, dtype=torch.float64)[:, None] % torch.tensor([4, 8, 16])  # moving it rounds nothing
    rows, weights = drawn(20, 1), torch.ones(20, 1, dtype=torch.float64)
    one, moved = taught(memory, (rows, weights)), taught(memory + 1, (rows, weights))
    assert torch.equal(one.prior.psi, moved.prior.psi)
    with pytest.raises(ValueError, match="different priors"):
        one.extend(moved)


@pytest.mark.parametrize("n", [3, 1e12])
def test_draws_are_students_t_and_take_no_more_memory_for_more_samples(n):
    gaussians = OwnGaussians(drawn(40, 0), lambda samples: samples.x)
    gaussians.add_components(1)
    gaussians.add(Samples(drawn(4, 1)), torch.full((4, 1), n / 4))
    degrees, location, cholesky = (value[0] for value in gaussians.predictive())
    rows = gaussians.sample(0, 4000, torch.Generator().manual_seed(0))
    standard = torch.linalg.solve_triangular(cholesky, (rows - location).T, upper=False)[0]
    assert kstest(standard.numpy(), "t", (float(degrees),)).pvalue > 0.05
