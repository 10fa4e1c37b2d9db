"""Patch features whose pooling can be varied: the moments that are taken, and the cells over which.

The package's own (:class:`~cndpm.experts.features.PatchFeatures`) take means and deviations over a 2 x 2 grid and are
written for speed. These take the same filters and are written to be varied; with both moments and a grid of 2 they are
the same numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.places import responses
from cndpm.experts.features import PatchFeatures
from cndpm.experts.features.patches import PatchFilters
from cndpm.experts.features.views import apply_view

__all__ = ["MOMENTS", "PooledPatches"]

MOMENTS = ("mean", "deviation", "both")
"""Moments of the rectified responses in a cell that become features."""

_BLOCK = 250


class PooledPatches:
    """Patch features of images (B, C, H, W), pooled by some moments over a square grid of cells.

    Args:
        fitted: The package's features, fitted: their filters, threshold and views are taken.
        moments: One of :data:`MOMENTS`.
        grid: Cells along an edge; neighbours overlap where they do not divide it.

    Example:
        >>> x = torch.rand(40, 1, 12, 12, generator=torch.Generator().manual_seed(0))
        >>> fitted = PatchFeatures(n_patches=2, views=("",))
        >>> fitted.fit(x, generator=torch.Generator().manual_seed(0))
        >>> PooledPatches(fitted, moments="mean", grid=3)(x).shape  # 3 sizes, 2 filters, 2 sides, 9 cells
        torch.Size([40, 108])
    """

    def __init__(self, fitted: PatchFeatures, *, moments: str, grid: int) -> None:
        if moments not in MOMENTS:
            raise ValueError(f"moments are one of {MOMENTS}; got {moments!r}")
        self._fitted, self._moments, self._grid = fitted, moments, grid

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        """Returns features, (B, d)."""
        return torch.cat([self._block(part.float()) for part in torch.split(x, _BLOCK)])

    def _block(self, x: Tensor) -> Tensor:
        views = [apply_view(x, view) for view in self._fitted.views]
        parts = [torch.stack([self._pooled(seen, f) for seen in views]).mean(dim=0) for f in self._fitted._filters]
        return torch.cat(parts, dim=1)

    def _pooled(self, x: Tensor, filters: PatchFilters) -> Tensor:
        """Returns moments of both sides of the responses in every cell, (B, moments * sides * P * cells)."""
        found = responses(x, filters)
        pooled = []
        for side in (found, -found):
            rectified = (side - self._fitted.threshold).clamp_min(0)
            mean = functional.adaptive_avg_pool2d(rectified, self._grid)
            if self._moments != "deviation":
                pooled.append(mean)
            if self._moments != "mean":
                square = functional.adaptive_avg_pool2d(rectified.square(), self._grid)
                pooled.append((square - mean.square()).clamp_min(0).sqrt())
        return torch.cat([part.flatten(1) for part in pooled], dim=1)
