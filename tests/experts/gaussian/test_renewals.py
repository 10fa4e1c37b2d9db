"""When routing is renewed, and on what its shrinkage is chosen."""

import pytest
import torch

from cndpm.experts.chunks import Samples
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.experts.gaussian.shrinkage import TAILS, choose_shrinkage, held_out_log_likelihood


def rows(n: int, d: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator) @ torch.randn(d, d, generator=torch.Generator().manual_seed(9))


def founded(n: int, d: int) -> SharedGaussians:
    gaussians = SharedGaussians(torch.zeros(d), lambda samples: samples.x)
    gaussians.add_components(1)
    gaussians.found(rows(n, d), torch.ones(n, 1).double())
    return gaussians


def renewals(gaussians: SharedGaussians, n: int) -> list[int]:
    """Counts of samples at which routing is renewed while one after another is learned."""
    counts, latest = [], gaussians.routing()
    for row in rows(n, gaussians.statistics.n_features, seed=1).split(1):
        gaussians.add(Samples(row), torch.ones(1, 1).double())
        if gaussians.routing().cholesky is not latest.cholesky:
            latest = gaussians.routing()
            counts.append(round(latest.count))
    return counts


def test_the_shrinkage_of_a_founding_memory_is_chosen_on_every_fifth_row():
    gaussians, x = founded(100, 4), rows(100, 4).double()
    held_out = torch.arange(100) % 5 == 4
    mean = x[~held_out].mean(dim=0)
    centred, deviations = x[~held_out] - mean, x[held_out] - mean
    scatter = centred.T @ centred
    best = choose_shrinkage(lambda value: held_out_log_likelihood(scatter, 79.0, deviations, value)[0], 1e-2)
    assert gaussians.choice.density == pytest.approx(best)
    assert gaussians.choice.tail == held_out_log_likelihood(scatter, 79.0, deviations, best, TAILS)[1]


def test_routing_is_renewed_when_a_twentieth_more_has_come_and_as_many_samples_as_features():
    assert renewals(founded(100, 3), 20) == [105, 111, 117]
    assert renewals(founded(100, 20), 50) == [120, 140]


def test_another_memory_renews_routing_when_it_is_a_tenth_of_what_was_there():
    for n, is_renewed in ((9, False), (10, True)):
        gaussians = founded(100, 3)
        before = gaussians.routing().cholesky
        gaussians.found(rows(n, 3, seed=2), torch.ones(n, 1).double())
        assert (gaussians.routing().cholesky is not before) is is_renewed
