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
