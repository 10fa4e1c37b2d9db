"""Decides when a sample is new, by the level and the windows of margins.

A sample is new when log alpha + log p(x, y | new) exceeds log n_k + log p(x, y | k) for every expert k, that is when
its *margin* g = max_k (log n_k + log p(x, y | k)) - log p(x, y | new) lies below log alpha. The margins of known
samples tell where it must be; :class:`cndpm.model.learned_level.LearnedLevel` combines these functions.

A record of margins is measured again every few batches, and batches are small. The functions take numpy arrays, since
on ten numbers the overhead of a tensor operation is larger than its work.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

__all__ = [
    "MIN_RECORD",
    "Floats",
    "accepts_expert",
    "levels",
    "margins",
    "novelty_level",
    "row_moments",
    "window_means",
]

Floats = NDArray[np.float64]
"""An array of double precision."""

MIN_RECORD = 20
"""The fewest margins from which a level is computed; with fewer nothing is new."""


def margins(log_known: Tensor, log_new: Tensor) -> tuple[Tensor, Tensor]:
    """Computes the margin g of every sample against its best expert.

    Args:
        log_known: log n_k + log p(x, y | k), (B, K), K at least 1.
        log_new: log p(x, y | new), (B,).

    Returns:
        The margins and the best experts, both (B,).

    Example:
        >>> import torch
        >>> margins(torch.tensor([[1.0, 3.0], [0.0, -4.0]]), torch.tensor([1.0, 2.0]))
        (tensor([ 2., -2.]), tensor([1, 0]))
    """
    best, expert = log_known.max(dim=1)
    return best - log_new, expert


def novelty_level(record: Floats, rate: float) -> Floats:
    """Returns the log alpha below which a share `rate` of margins like the recorded ones lies.

    Above one in twenty this is the quantile. Below, where samples are few, the lower tail is taken as exponential:
    beyond the quantiles at 5 and 25 %, or beyond those at 25 and 50 % where that is higher. An expert that errs has two
    kinds of margins, and those of its errors, up to a quarter of all, say nothing about the tail of the others.

    Args:
        record: Margins of known samples, (..., R); empty places are NaN.
        rate: The share, between 0 and 1.

    Returns:
        (...,); -inf, so that nothing is new, for rows of fewer than :data:`MIN_RECORD` margins.
    """
    return levels(record, rate)[0]


def levels(record: Floats, rate: float) -> tuple[Floats, Floats, Floats]:
    """Measures records of margins by one sort.

    Args:
        record: Margins of known samples, (..., R); empty places are NaN.
        rate: As for :func:`novelty_level`.

    Returns:
        The :func:`novelty_level`, the median, and the deviation of the lower side (median less the 16 % quantile), all
        (...,).
    """
    half, low, quarter, twentieth, level = _nanquantiles(record, 0.5, 0.16, 0.25, 0.05, rate)
    if rate < 0.05:
        tail = quarter - (quarter - twentieth) / math.log(5) * math.log(0.25 / rate)
        of_the_right = quarter - (half - quarter) / math.log(2) * math.log(0.25 / rate)
        level = np.maximum(tail, of_the_right)
    enough = np.count_nonzero(~np.isnan(record), axis=-1) >= MIN_RECORD
    return np.where(enough, level, -np.inf), half, _scale(half, low)


def window_means(values: Floats, history: Floats, window: int) -> Floats:
    """Averages values over a window around each of them.

    Windows lie inside the batch where it is long enough, centred on the sample as far as possible; a shorter batch is
    pooled with the history just before it.

    Args:
        values: A batch, (B, ...).
        history: The values before it, (H, ...).
        window: Number of values in a window.

    Returns:
        (B, ...).

    Example:
        >>> window_means(np.array([1.0, 2.0, 6.0]), np.array([0.0]), window=2)
        array([1.5, 1.5, 4. ])
    """
    joined = np.concatenate([history, values])
    start, width = _window_starts(len(joined), len(values), window)
    sums = np.zeros((len(joined) + 1, *joined.shape[1:]))
    joined.cumsum(axis=0, out=sums[1:])
    means: Floats = (sums[start + width] - sums[start]) / width
    return means


@lru_cache(maxsize=1024)
def _window_starts(n: int, b: int, window: int) -> tuple[NDArray[np.int64], int]:
    """Returns where the windows of the last b of n values begin, (b,), and how long they are."""
    width = min(window, n)
    first = n - b if b >= width else n - width
    return (np.arange(n - b, n) - width // 2).clip(first, n - width), width


def row_moments(values: Floats) -> Floats:
    """Returns number, sum and sum of squares of every row (R, n) without NaN, (R, 3)."""
    moments: Floats = np.nansum([~np.isnan(values), values, np.square(values)], axis=2).T
    return moments


def accepts_expert(log_candidate: Tensor, log_mixture: Tensor, *, cost: float) -> bool:
    """Returns whether a candidate expert gains more on held-out samples than it costs.

    Args:
        log_candidate: log p(x, y) of held-out memory samples under the mixture with the candidate, (H,).
        log_mixture: The same without it, (H,).
        cost: The cost of an expert a priori, in nats, e.g. log n - log alpha of a Dirichlet process; at least 0.

    Returns:
        True where the sum of the gains exceeds the cost, and where there are no held-out samples.
    """
    if not len(log_candidate):
        return True
    gain = (log_candidate - log_mixture).nan_to_num(posinf=1e6, neginf=-1e6)
    return bool(gain.sum() > cost)


def _scale(median: Floats, low: Floats) -> Floats:
    """Returns the deviation of the lower side, kept above zero."""
    return np.maximum(median - low, 1e-6 * (1 + np.abs(median)))


def _nanquantiles(record: Floats, *shares: float) -> Floats:
    """Returns quantiles over the last dimension, ignoring NaN, by one sort: (n_shares, ...), NaN for empty rows."""
    values = np.sort(record.reshape(-1, record.shape[-1]), axis=1)  # NaN last
    last = (np.count_nonzero(~np.isnan(values), axis=1) - 1).clip(min=0)
    position = np.array(shares)[:, None] * last
    below, row = position.astype(np.int64), np.arange(len(values))
    low, high = values[row, below], values[row, np.minimum(below + 1, last)]
    quantiles: Floats = low + (high - low) * (position - below)
    return quantiles.reshape(len(shares), *record.shape[:-1])
