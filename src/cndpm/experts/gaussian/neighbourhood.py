"""An index over the means of many components: finds the few that may explain a row, without asking the others.

Means are projected to the directions in which they differ most. A row compares itself with all of them there, where a
mean is 64 numbers of single precision, and takes the nearest; what it answers with is then computed exactly for these.
Distances in a projection are never larger than in full, so a component that looks far away is.

The index is made when routing is renewed, which learning alone determines, so answers do not depend on when they were
asked for; components that came later are projected when they are asked about.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.experts.gaussian.densities import FEW_ROWS
from cndpm.experts.gaussian.factor import Factor
from cndpm.state import State

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
