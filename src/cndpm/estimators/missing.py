"""Missing values, NaN, completed from known rows that look alike in the values that are there.

Kernels around known rows are a density of x. Given the values of a row that are there, it weighs the known rows: the
nearest of them say what the missing values may have been, and how probably. What is learned is their weighted mean,
the conditional mean under that density. An answer is averaged over all of them, which marginalises the missing values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NEIGHBOURS = 10
"""Known rows that a row is completed from; their weights fall with the distance."""
_WIDTH = 0.25
"""Width of the kernel in units of their mean squared distance."""
_TOGETHER = 500
"""Rows of a call that complete each other."""
_LITTLE = 1e-6
"""Weight of values that were missing themselves."""
_LATEST = 1000
"""Rows of a call that complete those after them."""

Rows = NDArray[np.float32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Completions:
    """Rows completed in several ways."""

    rows: Rows  # all completions, those of a row one after the other, (N, d); a row without gaps is its only one
    weights: Floats  # probabilities of the completions, (N,), which sum to 1 for each row
    starts: NDArray[np.int64]  # the first completion of each row, (n,)


def complete_rows(rows: Rows, known: Rows) -> Completions:
    """Returns rows (n, d) with every gap (NaN) filled in up to ten ways from `known` rows (m, d), which are complete.

    ValueError: nothing is known of a row.
    """
    _refuse_empty(rows)
    scale = _scale(known)
    parts, weights = [], []
    for row in rows:
        gap = np.isnan(row)
        nearest, weight = _nearest(row, gap, known, scale) if gap.any() else (np.zeros(1, np.int64), np.ones(1))
        parts.append(np.where(gap, known[nearest], row))
        weights.append(weight)
    sizes = np.array([len(weight) for weight in weights])
    return Completions(np.concatenate(parts), np.concatenate(weights), np.cumsum(sizes) - sizes)


def fill_missing(rows: Rows, known: Rows) -> Rows:
    """Returns rows that are about to be learned without NaN, each with the mean of what its gaps may have been.

    The rows of a call complete each other, too: the first ones of a new class resemble nothing that is known.
    ValueError: nothing is known of a row.
    """
    if not np.isnan(rows).any():
        return rows
    _refuse_empty(rows)
    filled: list[Rows] = []
    for start in range(0, len(rows), _TOGETHER):
        latest = np.concatenate(filled)[-_LATEST:] if filled else rows[:0]
        filled.append(_fill_together(rows[start : start + _TOGETHER], np.concatenate([known, latest])))
    return np.concatenate(filled)


def mean_over(ways: Completions | None, values: Floats) -> Floats:
    """Returns the mean of values (N, ...) over the completions of each row, (n, ...); None stands for one each."""
    if ways is None:
        return values
    weights = ways.weights.reshape(-1, *[1] * (values.ndim - 1))
    return np.add.reduceat(values * weights, ways.starts, axis=0)


def log_mean_over(ways: Completions | None, logs: Floats) -> Floats:
    """Returns the log of the mean of values, whose logs are (N, ...), over the completions of each row, (n, ...)."""
    if ways is None:
        return logs
    weights = np.log(ways.weights).reshape(-1, *[1] * (logs.ndim - 1))
    return np.logaddexp.reduceat(logs + weights, ways.starts, axis=0)


def _fill_together(rows: Rows, known: Rows) -> Rows:
    """Returns rows completed by the known ones and by each other, once these have been completed for a first time."""
    is_missing = np.isnan(rows)
    if len(known) >= _NEIGHBOURS:
        first = _filled(rows, is_missing, known)
    else:  # by the means of columns; by 0 where nothing is known of one
        both = np.concatenate([known, rows])
        is_there = ~np.isnan(both)
        mean = np.where(is_there, both, 0).sum(axis=0) / np.maximum(is_there.sum(axis=0), 1)
        first = np.where(is_missing, mean, rows).astype(np.float32)
    if len(rows) == 1 and len(known) >= _NEIGHBOURS:
        return first
    return _filled(rows, is_missing, np.concatenate([known, first]), is_own=True)


def _filled(rows: Rows, is_missing: NDArray[np.bool_], known: Rows, *, is_own: bool = False) -> Rows:
    """Returns rows (n, d) with the weighted means of their neighbours among `known` (m, d), complete rows, in the gaps.

    With `is_own` the rows themselves, completed for a first time, are the last of these. A row does not complete
    itself, and what was missing in others counts next to nothing.
    """
    scale, filled, first_own = _scale(known), rows.copy(), len(known) - len(rows)
    trust = np.ones(known.shape)
    if is_own:
        trust[first_own:][is_missing] = _LITTLE
    for i in np.nonzero(is_missing.any(axis=1))[0]:
        gap = is_missing[i]
        nearest, weights = _nearest(rows[i], gap, known, scale, leave=first_own + int(i) if is_own else None)
        shares = weights[:, None] * trust[nearest][:, gap]
        filled[i, gap] = (shares * known[nearest][:, gap]).sum(axis=0) / shares.sum(axis=0)
    return filled


def _nearest(
    row: Rows, gap: NDArray[np.bool_], known: Rows, scale: Floats, *, leave: int | None = None
) -> tuple[NDArray[np.int64], Floats]:
    """Returns the known rows nearest to `row` in the columns that are there, and their weights, (k,) each.

    The known row `leave` is left out, unless it is the only one.
    """
    distance = (((known[:, ~gap] - row[~gap]) / scale[~gap]) ** 2).sum(axis=1)
    n = min(_NEIGHBOURS, len(known))
    if leave is not None and len(known) > 1:
        distance[leave], n = np.inf, min(_NEIGHBOURS, len(known) - 1)
    nearest = np.argpartition(distance, n - 1)[:n]
    away = distance[nearest] - distance[nearest].min()
    weights = np.exp(-0.5 * away / max(_WIDTH * float(distance[nearest].mean()), 1e-12))
    return nearest, weights / weights.sum()


def _refuse_empty(rows: Rows) -> None:
    if (empty := np.isnan(rows).all(axis=1)).any():
        raise ValueError(
            f"Input X contains NaN in all columns of row {int(empty.argmax())}: nothing is known of it. Leave it out."
        )


def _scale(known: Rows) -> Floats:
    """Returns the deviation of each column, (d,), but not less than a tenth of the typical one."""
    deviation = known.astype(np.float64).std(axis=0)
    scale: Floats = np.maximum(deviation, max(0.1 * float(np.median(deviation)), 1e-6))
    return scale
