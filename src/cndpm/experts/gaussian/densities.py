"""Densities of whitened rows under components of a factor: pure functions beside the ones that a stream needs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cndpm.experts.gaussian.conjugate import log_elliptical
from cndpm.experts.gaussian.factor import Factor
from cndpm.experts.gaussian.transfer import normal_draws

__all__ = ["draw", "leave_one_out", "near_log_prob"]

_ROWS = 128
"""Rows whose components are gathered at once."""


def draw(factor: Factor, component: int, count: float, n: int, generator: torch.Generator) -> Tensor:
    """Draws n rows, less the origin, from the predictive density of a component, (n, d), float64.

    Tails are left out: a draw is of the normal density with the same mean and covariance.

    Args:
        factor: Of the covariance.
        component: Its index.
        count: Its samples.
        n: Number of rows.
        generator: Source of random numbers.
    """
    kappa = count + factor.kappa
    noise = normal_draws((n, len(factor.mean)), generator, factor.mean.device)
    whitened = (factor.sums[component] + factor.kappa * factor.mean) / kappa + noise * math.sqrt(1 + 1 / kappa)
    return whitened @ factor.cholesky.T


def near_log_prob(factor: Factor, whitened: Tensor, components: Tensor, counts: Tensor) -> Tensor:
    """Returns predictive log densities of rows under some components each, (B, S).

    Args:
        factor: Of the covariance, with J components.
        whitened: Rows as the factor sees them, (B, d).
        components: The components asked of each row, (B, S).
        counts: Samples of the components, (J,).
    """
    kappas = counts.to(whitened.device)[components] + factor.kappa
    distance = torch.empty_like(kappas)
    for start in range(0, len(whitened), _ROWS):
        part = slice(start, start + _ROWS)
        anchors, rows = factor.anchors[components[part]], whitened[part]
        cross = torch.bmm(anchors, rows[:, :, None])[:, :, 0] + factor.kappa * (rows @ factor.mean)[:, None]
        lengths = torch.linalg.vector_norm(anchors, dim=2).square()
        of_means = lengths + 2 * factor.kappa * (anchors @ factor.mean) + factor.kappa**2 * factor.mean.square().sum()
        distance[part] = rows.square().sum(dim=1)[:, None] - 2 * cross / kappas[part] + of_means / kappas[part] ** 2
    distance.clamp_min_(0)
    return log_elliptical(distance, factor.log_det, whitened.shape[1], 1 + 1 / kappas, factor.tail)


def leave_one_out(factor: Factor, whitened: Tensor, groups: Tensor) -> Tensor:
    """Returns the log density of each of M rows under a component made of the others of its group, (M,), on the host.

    Args:
        factor: Of the covariance.
        whitened: Rows as the factor sees them, (M, d).
        groups: Group indices (M,), from 0 on.
    """
    members = torch.nn.functional.one_hot(groups.to(whitened.device)).double()
    own = members.argmax(dim=1)
    kappas = (members.sum(dim=0) - 1)[own] + factor.kappa
    means = (factor.kappa * factor.mean + (members.T @ whitened)[own] - whitened) / kappas[:, None]
    distance = (whitened - means).square().sum(dim=1)
    return log_elliptical(distance, factor.log_det, len(factor.mean), 1 + 1 / kappas, factor.tail).cpu()
