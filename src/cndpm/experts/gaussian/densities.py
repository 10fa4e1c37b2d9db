"""Densities of whitened rows under components of a factor, beside those that routing needs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.gaussian.factor import Factor, Values, host_values, log_elliptical

FEW_ROWS = 128
"""Rows whose components are gathered, or compared, at once: a table of their distances fits into a cache."""


def draw(factor: Factor, component: int, count: float, n: int, generator: torch.Generator) -> Tensor:
    """Draws n rows, less the origin, from the predictive density of a component of `count` samples, (n, d), float64.

    Tails are left out: a draw is of the normal density with the same mean and covariance.
    """
    kappa = count + factor.kappa
    noise = normal_draws((n, len(factor.mean)), generator, factor.mean.device)
    whitened = (factor.sums[component] + factor.kappa * factor.mean) / kappa + noise * math.sqrt(1 + 1 / kappa)
    return whitened @ factor.cholesky.T


def near_log_prob(factor: Factor, whitened: Tensor, components: Tensor, counts: Tensor) -> Tensor:
    """Returns predictive log densities of whitened rows (B, d) under some of the J components each, (B, S)."""
    kappas = counts.to(whitened.device)[components] + factor.kappa
    distance = torch.empty_like(kappas)
    for start in range(0, len(whitened), FEW_ROWS):
        part = slice(start, start + FEW_ROWS)
        anchors, rows = factor.anchors[components[part]], whitened[part]
        cross = torch.bmm(anchors, rows[:, :, None])[:, :, 0] + factor.kappa * (rows @ factor.mean)[:, None]
        lengths = torch.linalg.vector_norm(anchors, dim=2).square()
        of_means = lengths + 2 * factor.kappa * (anchors @ factor.mean) + factor.kappa**2 * factor.mean.square().sum()
        distance[part] = rows.square().sum(dim=1)[:, None] - 2 * cross / kappas[part] + of_means / kappas[part] ** 2
    distance.clamp_min_(0)
    return log_elliptical(distance, factor.log_det, whitened.shape[1], 1 + 1 / kappas, factor.tail)


def leave_one_out(factor: Factor, whitened: Tensor, groups: Tensor) -> Tensor:
    """Returns the log density of M whitened rows under a component of the others of their group, (M,), on the host."""
    members = torch.nn.functional.one_hot(groups.to(whitened.device)).double()
    own = members.argmax(dim=1)
    kappas = (members.sum(dim=0) - 1)[own] + factor.kappa
    means = (factor.kappa * factor.mean + (members.T @ whitened)[own] - whitened) / kappas[:, None]
    distance = (whitened - means).square().sum(dim=1)
    return log_elliptical(distance, factor.log_det, len(factor.mean), 1 + 1 / kappas, factor.tail).cpu()


def prior_strength(sums: Values, counts: Values, mean: Values) -> float:
    """Estimates kappa0 by moments: 1 / kappa0 is the variance of the whitened means about m0, less estimation error.

    The estimate, of whitened sums (J, d), counts (J,) and m0 (d,), is at most a tenth of a component's samples, so that
    components of few samples, whose means lie within their error, are not all taken for one.
    """
    present = counts > 0
    if not present.all():
        sums, counts = sums[present], counts[present]
    n = len(counts)
    if n < 2:
        return 1.0
    spreads = ((sums / counts[:, None] - mean) ** 2).sum(1) / sums.shape[1] - 1 / counts
    spread_of_means = float(spreads.sum()) / n * n / (n - 1)
    return min(1 / min(max(spread_of_means, 1e-6), 1e6), 0.1 * float(counts.sum()) / n)


def typical_margins(factor: Factor, counts: Tensor) -> Tensor:
    """Returns log p(z | j) - log p(z | new) of a typical sample of each of J components, (J,), on the host.

    A typical sample lies at squared distance d from the component's mean and at d + r^2 from the prior's, where r is
    the distance of the two means.
    """
    n, d = counts.to(factor.anchors.device), len(factor.mean)
    kappas = n + factor.kappa
    apart = ((factor.sums - n[:, None] * factor.mean) / kappas[:, None]).square().sum(dim=1)
    known = log_elliptical(torch.full_like(apart, d), factor.log_det, d, 1 + 1 / kappas, factor.tail)
    scale = torch.full_like(apart, 1 + 1 / factor.kappa)
    return (known - log_elliptical(d + apart, factor.log_det, d, scale, factor.tail)).cpu()


def typical_cross_margins(factor: Factor, counts: Tensor, components: Tensor) -> Tensor:
    """Returns log p(z | i) - log p(z | new) of a typical sample z of component j, [i, j], (S, S), on the host.

    A typical sample of j lies at squared distance d + r^2 from a mean at distance r of j's.
    """
    kappas, d = counts.to(factor.anchors.device)[components] + factor.kappa, len(factor.mean)
    means = (factor.sums[components] + factor.kappa * factor.mean) / kappas[:, None]
    apart = torch.cdist(means, means, compute_mode="donot_use_mm_for_euclid_dist").square()
    known = log_elliptical(d + apart, factor.log_det, d, (1 + 1 / kappas)[:, None], factor.tail)
    from_prior = d + (means - factor.mean).square().sum(dim=1)
    scale = torch.full_like(from_prior, 1 + 1 / factor.kappa)
    return (known - log_elliptical(from_prior, factor.log_det, d, scale, factor.tail)).cpu()


class Posteriors(NamedTuple):
    """J components N(mu_j, (1 + 1 / kappa_j) Sigma), or Student's t, ready for many questions; arrays on the host."""

    factor: Factor  # L of Sigma, prior and tail that they were made with
    means: Tensor  # L^-1 mu_j, (J, d), float64, a tensor
    squares: Any  # mu_j Sigma^-1 mu_j, (J,)
    peaks: Any  # log densities at the means, (J,)
    widths: Any  # what squared distances are divided by, (J,)

    @classmethod
    def of(cls, factor: Factor, *, sums: Tensor, counts: Tensor) -> Posteriors:
        """Makes components of whitened sums L^-1 s_j, (J, d), float64, and counts, (J,)."""
        kappas = host_values(counts.to(sums.device)) + factor.kappa
        values = (host_values(sums) + factor.kappa * host_values(factor.mean)) / kappas[:, None]
        means = torch.empty_like(sums)  # as memory of torch is, and what products round to may depend on that
        means.copy_(torch.as_tensor(values))
        n_dims, scale = means.shape[1], 1 + 1 / kappas
        peaks = log_elliptical(0 * kappas, factor.log_det, n_dims, scale, factor.tail)
        widths = scale if math.isinf(factor.tail) else scale * (factor.tail - 2)
        return cls(factor, means, (values**2).sum(axis=1), peaks, widths)

    def log_prob(self, lengths: Any, products: Any) -> Any:
        """Returns the log density of rows of squared `lengths` (B, 1), given their products with the means, (B, J)."""
        distance = lengths - 2 * products + self.squares
        distance = distance * (distance > 0) / self.widths  # clipping an array takes longer
        if math.isinf(self.factor.tail):
            return self.peaks - 0.5 * distance
        far = distance.log1p() if isinstance(distance, Tensor) else np.log1p(distance)
        return self.peaks - 0.5 * (self.factor.tail + self.means.shape[1]) * far


def normal_draws(shape: tuple[int, ...], generator: torch.Generator, device: torch.device) -> Tensor:
    """Returns standard normal draws, float64, brought from the generator's device to another."""
    return torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device).to(device)
