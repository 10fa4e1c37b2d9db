"""The index against a comparison with every mean."""

import torch

from cndpm.experts.gaussian.densities import MeanIndex
from cndpm.experts.gaussian.shared_covariance import SharedGaussians


def many(n_components: int, d: int = 40, seed: int = 0):
    """Components whose means differ in twenty directions most, and rows of them."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.cat([torch.full((20,), 3.0), torch.full((d - 20,), 0.3)])
    centres = scales * torch.randn(n_components, d, generator=generator)
    owners = torch.arange(6 * n_components) % n_components
    z = (centres[owners] + torch.randn(len(owners), d, generator=generator)).double()
    gaussians = SharedGaussians(torch.zeros(d), lambda samples: samples.x)
    gaussians.add_components(n_components)
    gaussians.found(z, torch.nn.functional.one_hot(owners).double())
    return gaussians, centres, generator


def test_the_nearest_of_all_means_is_found():
    gaussians, centres, generator = many(600)
    factor, counts = gaussians.routing(), gaussians.counts
    rows = factor.whiten((centres + torch.randn(centres.shape, generator=generator)).double())
    found = MeanIndex.of(factor, counts).nearest(rows, factor, counts)
    best = torch.cdist(rows, factor.sums / counts[:, None]).argmin(dim=1)
    assert found.shape == (600, 24)
    assert ((found == best[:, None]).any(dim=1)).double().mean() > 0.998


def test_components_that_came_after_the_index_are_found():
    gaussians, centres, _ = many(300)
    index = MeanIndex.of(gaussians.routing(), gaussians.counts)
    gaussians.add_components(1)
    far = centres.max(dim=0).values.double()[None] * 3
    gaussians.found(far, torch.ones(1, 1, dtype=torch.float64), torch.tensor([300]).numpy())
    factor = gaussians.routing()
    assert int(index.nearest(factor.whiten(far), factor, gaussians.counts)[0, 0]) == 300


def test_an_index_that_was_saved_finds_the_same():
    gaussians, centres, _ = many(300)
    factor, counts = gaussians.routing(), gaussians.counts
    index = MeanIndex.of(factor, counts)
    again = MeanIndex.from_state(index.state_dict())
    rows = factor.whiten(centres.double())
    assert torch.equal(index.nearest(rows, factor, counts), again.nearest(rows, factor, counts))
