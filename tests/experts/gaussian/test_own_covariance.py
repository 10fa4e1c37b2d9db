import torch

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
