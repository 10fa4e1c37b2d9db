"""Missing values, NaN, filled from rows that look alike where both are known.

Kernels around the kept rows are a density of x. Given the values of a row that are there, it weighs the kept rows; the
mean of what they have in the missing columns is the conditional mean under that density, by which the row is completed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["fill_missing"]

_NEIGHBOURS = 10
"""Kept rows that a row is completed from; their weights fall with the distance."""
_WIDTH = 0.25
"""Width of the kernel in units of their mean squared distance."""
_MOST_ROWS = 1000

Rows = NDArray[np.float32]


def fill_missing(rows: Rows, kept: Rows) -> Rows:
    """Returns rows without NaN.

    Args:
        rows: (n, d), with NaN where a value is missing.
        kept: Rows that were learned, (m, d), complete. Where there are fewer than ten, rows complete each other, with
            the mean of a column at first, and 0 where nothing is known of it.

    Raises:
        ValueError: Nothing is known of a row.

    Example:
        >>> kept = np.array([[0, 0]] * 10 + [[9, 5]] * 10, dtype=np.float32)
        >>> fill_missing(np.array([[9, np.nan], [0.1, np.nan]], dtype=np.float32), kept).tolist()
        [[9.0, 5.0], [0.10000000149011612, 0.0]]
    """
    is_missing = np.isnan(rows)
    if not is_missing.any():
        return rows
    if (empty := is_missing.all(axis=1)).any():
        raise ValueError(
            f"Input X contains NaN in all columns of row {int(empty.argmax())}: nothing is known of it. Leave it out."
        )
    if len(kept) < _NEIGHBOURS:
        kept = np.concatenate([kept, _by_means(rows, is_missing, kept)])[-_MOST_ROWS:]
    scale = _scale(kept)
    filled = rows.copy()
    for i in np.nonzero(is_missing.any(axis=1))[0]:
        gap = is_missing[i]
        filled[i, gap] = _conditional_mean(rows[i, ~gap] / scale[~gap], kept[:, ~gap] / scale[~gap], kept[:, gap])
    return filled


def _conditional_mean(known: Rows, theirs: Rows, wanted: Rows) -> NDArray[np.float64]:
    """Returns the mean of the columns wanted, (n_missing,), over the kept rows nearest in those that are known.

    Args:
        known: The row's own values, (n_known,).
        theirs: The same columns of the kept rows, (m, n_known).
        wanted: Their other columns, (m, n_missing).
    """
    distance = ((theirs - known).astype(np.float64) ** 2).sum(axis=1)
    n = min(_NEIGHBOURS, len(distance))
    nearest = np.argpartition(distance, n - 1)[:n]
    away = distance[nearest] - distance[nearest].min()
    weights = np.exp(-0.5 * away / max(_WIDTH * float(distance[nearest].mean()), 1e-12))
    mean: NDArray[np.float64] = (weights / weights.sum()) @ wanted[nearest]
    return mean


def _by_means(rows: Rows, is_missing: NDArray[np.bool_], kept: Rows) -> Rows:
    """Returns rows completed by the means of their columns."""
    both = np.concatenate([kept, rows])
    known = ~np.isnan(both)
    mean = np.where(known, both, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(is_missing, mean, rows).astype(np.float32)


def _scale(kept: Rows) -> NDArray[np.float64]:
    """Returns the deviation of each column, (d,), but not less than a tenth of the typical one."""
    deviation = kept.astype(np.float64).std(axis=0)
    scale: NDArray[np.float64] = np.maximum(deviation, max(0.1 * float(np.median(deviation)), 1e-6))
    return scale
