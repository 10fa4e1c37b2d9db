"""Responses of filters to contrast-normalised patches of an image and its mirror image, pooled over a 2 x 2 grid.

This is where the time of patch features goes, so products are made once for both views and numbers are touched rarely:

- A filter is the sum of a symmetric and an antisymmetric one. The first needs the sums of opposite columns of a patch,
  the second their differences, so each takes half of the products. Where they respond E and O, the filter's response is
  E + O, and E - O is its response to the mirror image, at the mirrored place.
- Patches are divided by their deviation before they are multiplied: they are fewer numbers than responses. Centring is
  in the filters, which sum to zero; bias and threshold are the weight of one more number, which is 1 in every patch.
- Patches are laid out cell by cell of the grid, so that pooling sums neighbours in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from cndpm.experts.features.rectification import pool_rectified
from cndpm.experts.workspace import borrow, give_back

CONTRAST_FLOOR = 10 / 255**2
"""Added to a patch's variance before it is divided by its root."""

GRID = 2
"""Cells along an edge of the image; the middle row of an odd number belongs to both sides."""

N_MOMENTS = 4
"""Mean and deviation above the threshold, and the same below the negative one."""


@dataclass(frozen=True)
class FoldedFilters:
    """Filters of one patch size in their symmetric and antisymmetric parts.

    Attributes:
        weight: (2, P, K + 1) with K = C * ceil(size / 2) * size; the last one is the response to the number 1.
        size: Edge length of the patches.
        threshold: Of the rectification.
    """

    weight: Tensor
    size: int
    threshold: float

    def pooled(self, x: Tensor, sides: tuple[int, ...], block_size: int) -> Tensor:
        """Returns moments of the rectified responses in every cell, summed over `sides`, (B, 4, P, 2, 2).

        Args:
            x: Images (B, C, H, W), float32.
            sides: 1 for the images themselves, -1 for their mirror images, or both.
            block_size: Images at a time.
        """
        windows, contrast = self._windows(x), self._contrast(x)
        sums, squares = (x.new_empty(len(sides), 2, self.weight.shape[1], *contrast.shape[:-1]) for _ in range(2))
        blocks = (
            torch.split(part, block_size, dim) for part, dim in ((windows, 4), (contrast, 0), (sums, 3), (squares, 3))
        )
        buffers = _Buffers(self.weight, windows[:, :, :, :, :block_size])
        for window, scale, total, square in zip(*blocks, strict=True):
            if window.shape != buffers.windows.shape:
                buffers = buffers.replaced(window)
            torch.mul(window, scale, out=buffers.windows)
            torch.bmm(self.weight, buffers.patches, out=buffers.responses)
            pool_rectified(buffers.responses, sides, self.threshold, total, square)
        buffers.give_back()
        return _moments(sums, squares, contrast.shape[-1], sides)

    def _contrast(self, x: Tensor) -> Tensor:
        """Returns 1 / sqrt(variance + floor) of every patch over all channels, by cells, (B, 2, 2, cell size)."""
        rows, columns = (_sliding_average(n, self.size, x.device) for n in x.shape[-2:])
        # Products of matrices, not convolutions, which a GPU would round too coarsely for a difference of squares.
        mean, square = rows @ torch.stack([x.mean(dim=1), x.square().mean(dim=1)]) @ columns.mT
        inverse = (square - mean.square()).clamp_min_(0).add_(CONTRAST_FLOOR).rsqrt_()
        return _cut(_cut(inverse, 1), 2).flatten(3)

    def _windows(self, x: Tensor) -> Tensor:
        """Adds and subtracts opposite columns of all patches: a view (2, C, half, size, B, 2, 2, cell size)."""
        size, half, (n, channels, height, width) = self.size, -(-self.size // 2), x.shape
        n_rows = height - size + 1
        cell = -(-n_rows // GRID), -(-(width - size + 1) // GRID)
        folded = (x.reshape(-1, width) @ _folding(width, size, x.device)).view(n, channels, height, 2, half, GRID, -1)
        folded = folded.permute(3, 1, 4, 0, 5, 2, 6).contiguous()  # (2, C, half, B, 2, H, w)
        step, row = folded.stride()[:-2], cell[1]
        return folded.as_strided(  # rows of a window follow one another
            (2, channels, half, size, n, GRID, GRID, cell[0] * row),
            (*step[:3], row, step[3], (n_rows - cell[0]) * row, step[4], 1),
        )


def fold_filters(weight: Tensor, bias: Tensor, threshold: float) -> FoldedFilters:
    """Splits filters, whose response to a patch is weight * patch - bias, into symmetric and antisymmetric parts.

    Args:
        weight: (P, C, size, size); each filter sums to zero.
        bias: (P,).
        threshold: Of the rectification.
    """
    size = weight.shape[-1]
    mirrored = weight.flip(-1)
    parts = torch.stack([weight + mirrored, weight - mirrored])[..., : -(-size // 2)] / 2
    if size % 2:
        parts[..., -1] /= 2  # the middle column is its own opposite
    constant = torch.stack([-bias - threshold, torch.zeros_like(bias)])
    return FoldedFilters(torch.cat([parts.mT.flatten(2), constant[:, :, None]], dim=2), size, threshold)


class _Buffers:
    """Buffers for the work on a block of windows, (2, C, half, size, B, 2, 2, cell size).

    Attributes:
        patches: (2, K + 1, N) with ones at the end of every patch; N = B * 4 * cell size.
        windows: The same without the ones, in the shape of the block.
        responses: Of symmetric and antisymmetric filters, (2, P, N).
    """

    def __init__(self, weight: Tensor, window: Tensor) -> None:
        self._weight = weight
        (_, n_filters, n_weights), places = weight.shape, window.shape[4:]
        self.patches, self.responses = (borrow((2, n, places.numel()), window) for n in (n_weights, n_filters))
        self.patches[:, -1] = 1
        self.windows = self.patches[:, :-1].view(window.shape)

    def replaced(self, window: Tensor) -> _Buffers:
        """Gives these buffers back and returns others, for a block of another shape."""
        self.give_back()
        return _Buffers(self._weight, window)

    def give_back(self) -> None:
        """Gives the buffers back."""
        give_back(self.patches, self.responses)


def _moments(sums: Tensor, squares: Tensor, n: int, sides: tuple[int, ...]) -> Tensor:
    """Returns means and deviations of cells of n places, over all views, (B, 4, P, 2, 2), of (sides, 2, P, B, 2, 2)."""
    means = sums / n
    deviations = (squares / n).sub_(means.square()).clamp_min_(0).sqrt_()
    moments = torch.stack([means.abs_(), deviations], dim=2)
    views = torch.stack([view if side > 0 else view.flip(-1) for view, side in zip(moments, sides, strict=True)])
    return views.sum(dim=0).permute(3, 0, 1, 2, 4, 5).flatten(1, 2)


def _cut(x: Tensor, dim: int) -> Tensor:
    """Cuts a dimension into the grid's two overlapping halves, a view: dim becomes 2, places in a half come last."""
    n = x.shape[dim]
    longer = -(-n // GRID)
    return x.unfold(dim, longer, n - longer)


@lru_cache(maxsize=64)
def _sliding_average(n: int, size: int, device: torch.device) -> Tensor:
    """Returns the matrix (n - size + 1, n) that averages `size` neighbours among n."""
    start, position = torch.arange(n - size + 1, device=device)[:, None], torch.arange(n, device=device)
    return ((position >= start) & (position < start + size)).float() / size


@lru_cache(maxsize=64)
def _folding(n: int, size: int, device: torch.device) -> Tensor:
    """Returns the matrix (n, 2 * half * 2 * cell width) from n columns to sums and differences of opposite ones."""
    columns = torch.eye(n, device=device).unfold(1, n - size + 1, 1)  # (n, size, W')
    half = -(-size // 2)
    left, right = columns[:, :half], columns.flip(1)[:, :half]
    return _cut(torch.stack([left + right, left - right], dim=1), 3).reshape(n, -1)
