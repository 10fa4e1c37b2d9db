"""When is a sample new? Levels and windows of margins.

A record of margins is measured again with every few batches, and a batch is small: these functions take arrays, because
starting a tensor's operation on ten numbers costs more than doing it.

A sample is new when log alpha + log p(x, y | new) exceeds log n_k + log p(x, y | k) for every expert k, that is when
its *margin* g = max_k (log n_k + log p(x, y | k)) - log p(x, y | new) lies below log alpha. What margins of known
samples are like tells where that level must be: :class:`cndpm.mixture.auto_concentration.AutoConcentration` puts these
functions together.
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
    "centre_and_scale",
    "levels",
    "margins",
    "novelty_level",
    "surprise",
    "window_means",
]

Floats = NDArray[np.float64]

MIN_RECORD = 20
"""Margins that a level needs; with fewer nothing is new."""


def margins(log_known: Tensor, log_new: Tensor) -> tuple[Tensor, Tensor]:
    """The margin g of every sample and the expert it is taken against, both (B,).

    Args:
        log_known: log n_k + log p(x, y | k), (B, K), K at least 1.
        log_new: log p(x, y | new), (B,).
    """
    best, expert = log_known.max(dim=1)
    return best - log_new, expert


def novelty_level(record: Floats, rate: float) -> Floats:
    """log alpha such that a share `rate` of margins like those of `record` (..., R) lies below it, (...,).

    Empty places of the record are NaN.

    Above one in twenty this is the quantile; below, where few samples lie, the lower tail is taken as exponential:
    beyond the quantiles at 5 and 25 %, or beyond those at 25 and 50 % where that is higher. An expert that errs has two
    kinds of margins, and those of its errors, up to a quarter of all, say nothing about the tail of the others.
    With fewer than 20 margins nothing is new: -inf.
    """
    return levels(record, rate)[0]


def levels(record: Floats, rate: float) -> tuple[Floats, Floats, Floats]:
    """:func:`novelty_level` and :func:`centre_and_scale` of records (..., R) by one sort, all (...,)."""
    half, low, quarter, twentieth, level = _nanquantiles(record, 0.5, 0.16, 0.25, 0.05, rate)
    if rate < 0.05:
        tail = quarter - (quarter - twentieth) / math.log(5) * math.log(0.25 / rate)
        of_the_right = quarter - (half - quarter) / math.log(2) * math.log(0.25 / rate)
        level = np.maximum(tail, of_the_right)
    enough = np.count_nonzero(~np.isnan(record), axis=-1) >= MIN_RECORD
    return np.where(enough, level, -np.inf), half, _scale(half, low)


def surprise(margin: Floats, record: Floats) -> Floats:
    """How far margins (..., N) lie below the median of records (..., R), in units of the lower side's deviation."""
    median, scale = centre_and_scale(record)
    surprises: Floats = (median[..., None] - margin) / scale[..., None]
    return surprises


def window_means(values: Floats, history: Floats, window: int) -> Floats:
    """Mean over the window of every one of B values, given the H values before them: (B, ...) and (H, ...) to (B, ...).

    Windows lie inside the batch where it is long enough, centred on the sample as far as possible; a shorter batch is
    pooled with the history just before it.
    """
    joined = np.concatenate([history, values])
    start, width = _window_starts(len(joined), len(values), window)
    sums = np.zeros((len(joined) + 1, *joined.shape[1:]))
    joined.cumsum(axis=0, out=sums[1:])
    means: Floats = (sums[start + width] - sums[start]) / width
    return means


@lru_cache(maxsize=1024)
def _window_starts(n: int, b: int, window: int) -> tuple[NDArray[np.int64], int]:
    """Where the windows of the last b of n values begin, (b,), and how long they are."""
    width = min(window, n)
    first = n - b if b >= width else n - width
    return (np.arange(n - b, n) - width // 2).clip(first, n - width), width


def accepts_expert(log_candidate: Tensor, log_mixture: Tensor, *, cost: float) -> bool:
    """Whether a candidate earns its place: the mean gain over held-out samples times their number exceeds its cost.

    Args:
        log_candidate: log p(x, y) of held-out memory samples under the mixture with the candidate, (H,).
        log_mixture: The same without it, (H,).
        cost: In nats; log of what an expert costs a priori, e.g. log n - log alpha of a Dirichlet process, at least 0.
    """
    if not len(log_candidate):
        return True
    gain = (log_candidate - log_mixture).nan_to_num(posinf=1e6, neginf=-1e6)
    return bool(gain.sum() > cost)


def centre_and_scale(record: Floats) -> tuple[Floats, Floats]:
    """Median and lower-side deviation of records (..., R), both (...,)."""
    median, low = _nanquantiles(record, 0.5, 0.16)
    return median, _scale(median, low)


def _scale(median: Floats, low: Floats) -> Floats:
    """The lower side's deviation, a little more than nothing."""
    return np.maximum(median - low, 1e-6 * (1 + np.abs(median)))


def _nanquantiles(record: Floats, *shares: float) -> Floats:
    """Quantiles over the last dimension without NaN, stacked in front, (n, ...), by one sort; NaN for empty rows."""
    values = np.sort(record.reshape(-1, record.shape[-1]), axis=1)  # NaN last
    last = (np.count_nonzero(~np.isnan(values), axis=1) - 1).clip(min=0)
    position = np.array(shares)[:, None] * last
    below, row = position.astype(np.int64), np.arange(len(values))
    low, high = values[row, below], values[row, np.minimum(below + 1, last)]
    quantiles: Floats = low + (high - low) * (position - below)
    return quantiles.reshape(len(shares), *record.shape[:-1])
