"""Responses of filters to contrast-normalised patches of an image and its mirror image, pooled over a 2 x 2 grid.

This is where the time of patch features goes, so products are made once for both views and numbers are touched rarely:

- A filter is the sum of a symmetric and an antisymmetric one. The first needs the sums of opposite columns of a patch,
  the second their differences, so each takes half of the products. Where they respond E and O, the filter's response is
  E + O, and E - O is its response to the mirror image, at the mirrored place.
- Patches are divided by their deviation before they are multiplied: they are fewer numbers than responses. Centring is
  in the filters, which sum to zero; bias and threshold are the weight of one more number, which is 1 in every patch.
- Patches are laid out cell by cell of the grid, so that pooling sums neighbours in memory. Written with tensors it
  takes seven passes over responses that no cache of one core holds, longer than the products that make them. On a CPU
  it is one pass, compiled, where numba is installed; a GPU has the bandwidth, and responses never come to the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.chunks import borrow, give_back
from cndpm.extras import is_installed

CONTRAST_FLOOR = 10 / 255**2
"""Added to a patch's variance before it is divided by its root."""

GRID = 2
"""Cells along an edge of the image; the middle row of an odd number belongs to both sides."""


@dataclass(frozen=True)
class FoldedFilters:
    """Filters of one patch size in their symmetric and antisymmetric parts."""

    weight: Tensor  # (2, P, K + 1) with K = C * ceil(size / 2) * size; the last one is the response to the number 1
    size: int  # edge length of the patches
    threshold: float  # of the rectification

    def pooled(self, x: Tensor, sides: tuple[int, ...], block_size: int) -> Tensor:
        """Returns moments of the rectified responses in every cell, summed over `sides`, (B, 4, P, 2, 2).

        Images x are (B, C, H, W), float32, `block_size` at a time; a side is 1 for themselves, -1 for their mirror
        images.
        """
        windows, contrast = self._windows(x), self._contrast(x)
        sums = x.new_empty(len(sides), 2, self.weight.shape[1], *contrast.shape[:-1])
        squares, block = torch.empty_like(sums), windows[:, :, :, :, :0]
        borrowed: tuple[Tensor, ...] = ()
        for window, scale, total, square in zip(
            torch.split(windows, block_size, 4),
            torch.split(contrast, block_size),
            torch.split(sums, block_size, 3),
            torch.split(squares, block_size, 3),
            strict=True,
        ):
            if window.shape != block.shape:  # patches (2, K + 1, N) that end with ones, and their responses (2, P, N)
                give_back(*borrowed)
                n_places = window.shape[4:].numel()
                patches = borrow((2, self.weight.shape[2], n_places), window)
                responses = borrow((2, self.weight.shape[1], n_places), window)
                patches[:, -1] = 1
                block, borrowed = patches[:, :-1].view(window.shape), (patches, responses)
            torch.mul(window, scale, out=block)
            torch.bmm(self.weight, patches, out=responses)
            pool_rectified(responses, sides, self.threshold, total, square)
        give_back(*borrowed)
        return _moments(sums, squares, contrast.shape[-1], sides)

    def _contrast(self, x: Tensor) -> Tensor:
        """Returns 1 / sqrt(variance + floor) of every patch over all channels, by cells, (B, 2, 2, cell size)."""
        rows = _sliding_average(x.shape[-2], self.size, x.device)
        columns = _sliding_average(x.shape[-1], self.size, x.device)
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

    The weight is (P, C, size, size), each filter summing to zero, the bias (P,).
    """
    size = weight.shape[-1]
    mirrored = weight.flip(-1)
    parts = torch.stack([weight + mirrored, weight - mirrored])[..., : -(-size // 2)] / 2
    if size % 2:
        parts[..., -1] /= 2  # the middle column is its own opposite
    constant = torch.stack([-bias - threshold, torch.zeros_like(bias)])
    return FoldedFilters(torch.cat([parts.mT.flatten(2), constant[:, :, None]], dim=2), size, threshold)


def pool_rectified(responses: Tensor, sides: tuple[int, ...], threshold: float, sums: Tensor, squares: Tensor) -> None:
    """Writes the moments of the parts of responses above the threshold and below the negative threshold.

    Responses are those of symmetric filters less the threshold, and of antisymmetric ones, (2, P, N), cell after cell;
    the image's (side 1) are the sum of both, its mirror image's (-1) the difference. Sums over the places of every
    cell, and sums of squares, are written to `sums` and `squares`, (sides, 2, P, B, 2, 2).
    """
    if responses.device.type == "cpu" and (compiled := _compiled()) is not None:
        over_cells = sums.flatten(3).numpy(), squares.flatten(3).numpy()
        compiled(responses.numpy(), np.array(sides, dtype=np.float32), np.float32(threshold), *over_cells)
        return
    rectified = torch.empty_like(responses)
    (above, below), cells = rectified, rectified.view(*rectified.shape[:2], *sums.shape[3:], -1)
    for i, side in enumerate(sides):
        torch.add(*responses, alpha=side, out=below)
        torch.clamp(below, min=0, out=above)
        below.add_(2 * threshold).clamp_max_(0)
        torch.sum(cells, dim=-1, out=sums[i])
        torch.linalg.vector_norm(cells, dim=-1, out=squares[i])
    squares.square_()


@cache
def _compiled() -> Callable[..., None] | None:
    """Returns :func:`_pool` compiled, None without a compiler. Importing it takes long, so it waits for an image."""
    if not is_installed("numba"):
        return None
    import numba

    arrays = "float32[:, :, ::1], float32[::1], float32, float32[:, :, :, :], float32[:, :, :, :]"
    # Sums in any order, so that they are made of vectors; what is not finite stays so.
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}
    compiled: Callable[..., None]
    try:
        compiled = numba.njit(f"void({arrays})", cache=True, **options)(_pool)
    except (OSError, RuntimeError):  # nowhere to keep it until the next time
        compiled = numba.njit(f"void({arrays})", **options)(_pool)
    return compiled


def _pool(responses: Any, sides: Any, threshold: Any, sums: Any, squares: Any) -> None:
    """Does the work of :func:`pool_rectified`, with moments (sides, 2, P, cells)."""
    zero, gap = np.float32(0), threshold + threshold
    n_filters, n_cells = sums.shape[2], sums.shape[3]
    size = responses.shape[2] // n_cells
    for p in range(n_filters):
        for cell in range(n_cells):
            even = responses[0, p, cell * size : (cell + 1) * size]
            odd = responses[1, p, cell * size : (cell + 1) * size]
            for i in range(len(sides)):
                above, above_squared, below, below_squared = zero, zero, zero, zero
                for k in range(size):
                    excess = even[k] + sides[i] * odd[k]
                    positive, negative = max(excess, zero), min(excess + gap, zero)
                    above += positive
                    below += negative
                    above_squared += positive * positive
                    below_squared += negative * negative
                sums[i, 0, p, cell], sums[i, 1, p, cell] = above, below
                squares[i, 0, p, cell], squares[i, 1, p, cell] = above_squared, below_squared


def _moments(sums: Tensor, squares: Tensor, n: int, sides: tuple[int, ...]) -> Tensor:
    """Returns means and deviations of cells of n places, over all views, (B, 4, P, 2, 2), of (sides, 2, P, B, 2, 2)."""
    means = sums / n
    deviations = (squares / n).sub_(means.square()).clamp_min_(0).sqrt_()
    moments = torch.stack([means.abs_(), deviations], dim=2)
    for i, side in enumerate(sides):
        if side < 0:
            moments[i] = moments[i].flip(-1)
    return moments.sum(dim=0).permute(3, 0, 1, 2, 4, 5).flatten(1, 2)


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
