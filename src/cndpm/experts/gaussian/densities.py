"""Densities of whitened rows under components of a factor, beside those that routing needs, and an index over means.

The index finds the few of many components that may explain a row, without asking the others. Means are projected to
the directions in which they differ most. A row compares itself with all of them there, where a mean is 64 numbers of
single precision, and takes the nearest; what it answers with is then computed exactly for these. Distances in a
projection are never larger than in full, so a component that looks far away is. It is made when routing is renewed,
which learning alone determines, so answers do not depend on when they were asked for; components that came later are
projected when they are asked about.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.gaussian.factor import Factor, Values, host_values, log_elliptical
from cndpm.state import State

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


_N_DIRECTIONS = 64
"""Directions of the projection: whitened rows vary by one in each, means by much more in the first few."""

_N_NEAREST = 24
"""Components that are asked exactly."""


class MeanIndex:
    """The means of J components projected on orthonormal directions (d, p), as points (J, p), float32."""

    def __init__(self, directions: Tensor, points: Tensor) -> None:
        self._directions, self._points = directions, points
        self._table = _table(points)

    @classmethod
    def of(cls, factor: Factor, counts: Tensor) -> MeanIndex:
        """Makes the index of the J components of a factor."""
        means = _means(factor, counts)
        directions = _principal_directions(means)
        return cls(directions, means @ directions)

    def nearest(self, rows: Tensor, factor: Factor, counts: Tensor) -> Tensor:
        """Returns the components whose means lie nearest to each whitened row (B, d) in the projection, nearest first.

        Of the factor that the index was made of, with the components that came since: (B, 24), int64, or as many as
        there are.
        """
        table, n_known = self._table, len(self._points)
        if len(counts) > n_known:
            table = torch.cat([table, _table(_means(factor, counts, first=n_known) @ self._directions)])
        points = torch.nn.functional.pad(rows.float() @ self._directions, (0, 1), value=1.0)
        n_nearest = min(_N_NEAREST, len(table))
        return torch.cat([(part @ table.T).topk(n_nearest, dim=1).indices for part in torch.split(points, FEW_ROWS)])

    def state_dict(self) -> State:
        return {"directions": self._directions.clone(), "points": self._points.clone()}

    @classmethod
    def from_state(cls, state: State) -> MeanIndex:
        return cls(state["directions"].clone(), state["points"].clone())


def _means(factor: Factor, counts: Tensor, first: int = 0) -> Tensor:
    """Returns the whitened means of components from `first` on, (J - first, d), float32."""
    sums = factor.sums[first:] + factor.kappa * factor.mean
    return (sums / (counts[first:].to(sums.device) + factor.kappa)[:, None]).float()


def _table(points: Tensor) -> Tensor:
    """Returns points (J, p) with half their squared length, negative, (J, p + 1).

    The product with a row and a one is then largest for the nearest point.
    """
    return torch.cat([points, -0.5 * points.square().sum(dim=1, keepdim=True)], dim=1)


def _principal_directions(means: Tensor) -> Tensor:
    """Returns the directions in which means (J, d) vary most, (d, at most 64), by two steps of subspace iteration."""
    n_directions = min(_N_DIRECTIONS, *means.shape)
    centred = means - means.mean(dim=0)
    n_drawn = min(n_directions + 8, *means.shape)
    basis = torch.randn(means.shape[1], n_drawn, generator=torch.Generator().manual_seed(0)).to(means)
    for _ in range(2):
        basis = torch.linalg.qr(centred.T @ (centred @ basis)).Q
    _, _, rotation = torch.linalg.svd(centred @ basis, full_matrices=False)
    directions: Tensor = basis @ rotation.mT
    return directions[:, :n_directions].contiguous()
