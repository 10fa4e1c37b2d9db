"""Shrinkage of a covariance towards a multiple of the identity, chosen by a score.

Sigma(lambda) = (1 - lambda) W / nu + lambda t I, with t the mean variance. Lambda lives on a grid of half decades; the
search walks from its last value, because the best value moves slowly as data arrives. Of a scatter only the lower
triangle is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from cndpm.experts.gaussian.factor import log_elliptical

TAILS = (math.inf, 256.0, 128.0, 64.0, 32.0, 16.0, 8.0, 4.0)
"""Degrees of freedom that are tried; infinity is the Gaussian."""

_GRID = [10 ** (-exponent / 2) for exponent in range(12, -1, -1)]

GRID_STEP = _GRID[1] / _GRID[0]
"""Between neighbouring values of lambda."""


def mean_variance(scatter: Tensor, degrees: float) -> float:
    """Returns t of a scatter W (d, d), at least 1e-12: even constant data has a positive definite covariance."""
    return max(1e-12, float(scatter.diagonal().mean()) / degrees)


def shrunk_covariance(scatter: Tensor, degrees: float, shrinkage: float) -> Tensor:
    """Returns Sigma(lambda), (d, d), written over the scatter W; positive definite for lambda > 0."""
    floor = shrinkage * mean_variance(scatter, degrees)
    scatter.mul_((1 - shrinkage) / degrees).diagonal().add_(floor)
    return scatter


def oracle_shrinkage(scatter: Tensor, degrees: float) -> float:
    """Returns the oracle approximating shrinkage of Chen et al. (2010), for too few samples to hold any out."""
    d = len(scatter)
    diagonal, below = scatter.diagonal() / degrees, torch.tril(scatter, -1) / degrees
    trace_squared, square = float(diagonal.sum().square()), float(diagonal.square().sum() + 2 * below.square().sum())
    denominator = (degrees + 1 - 2 / d) * (square - trace_squared / d)
    if not denominator > 0:  # nor if it is no number: squares beyond all bounds
        return 1.0
    return min(1.0, max(_GRID[0], ((1 - 2 / d) * square + trace_squared) / denominator))


def held_out_log_likelihood(
    scatter: Tensor, degrees: float, deviations: Tensor, shrinkage: float, tails: tuple[float, ...] = TAILS
) -> tuple[float, float]:
    """Returns the mean log density of deviations (N, d) under Sigma(lambda) with the best of `tails`, and that tail.

    The density is -inf if Sigma has no factor. See :func:`~cndpm.experts.gaussian.factor.log_elliptical` for tails.
    """
    cholesky, info = torch.linalg.cholesky_ex(shrunk_covariance(scatter.clone(), degrees, shrinkage))
    if int(info) != 0:
        return -math.inf, tails[0]
    distance = torch.linalg.solve_triangular(cholesky, deviations.T, upper=False).square().sum(dim=0)
    log_det, one = 2 * float(cholesky.diagonal().log().sum()), distance.new_ones(())
    n_dims = deviations.shape[1]
    return max((float(log_elliptical(distance, log_det, n_dims, one, tail).mean()), tail) for tail in tails)


def choose_shrinkage(score: Callable[[float], float], start: float) -> float:
    """Returns the grid point with the best score, found by walking uphill from the one nearest to `start`."""
    position = min(range(len(_GRID)), key=lambda i: abs(math.log(_GRID[i] / start)))
    best = score(_GRID[position])
    for step in (-1, 1):
        moved = False
        while 0 <= position + step < len(_GRID):
            candidate = score(_GRID[position + step])
            if candidate <= best:
                break
            position, best, moved = position + step, candidate, True
        if moved:
            break
    return _GRID[position]
