"""Sums and squares of rectified responses over the cells of a grid.

Written with tensors it takes seven passes over responses that no cache of one core holds, longer than the products that
make them. On a CPU it is one pass, compiled, where numba is installed; a GPU has the bandwidth, and its responses never
come to the host.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cndpm.extras import is_installed


def pool_rectified(responses: Tensor, sides: tuple[int, ...], threshold: float, sums: Tensor, squares: Tensor) -> None:
    """Writes the moments of the parts of responses above the threshold and below the negative threshold.

    Args:
        responses: Of symmetric filters less the threshold, and of antisymmetric ones, (2, P, N), cell after cell.
        sides: 1 for the image, whose responses are the sum of both, -1 for its mirror image: the difference.
        threshold: Of the rectification.
        sums: Where sums over the places of every cell are written to, (sides, 2, P, B, 2, 2).
        squares: Where sums of squares are written to, of the same shape.
    """
    if responses.device.type == "cpu" and (compiled := _compiled()) is not None:
        over_cells = (moments.flatten(3).numpy() for moments in (sums, squares))
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
