"""Margins of samples: their windows, the levels below which they are new, and a record of known ones.

A sample is new when log alpha + log p(x, y | new) exceeds log n_k + log p(x, y | k) for every expert k, that is when
its *margin* g = max_k (log n_k + log p(x, y | k)) - log p(x, y | new) lies below log alpha. The margins of known
samples tell where it must be; `LearnedLevel` combines these functions.

A record of margins is measured again every few batches, and batches are small. The functions take numpy arrays, since
on ten numbers the overhead of a tensor operation is larger than its work.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cndpm.state import Keeps, State, StateError, tensor, whole

__all__ = ["accepts_expert", "margins"]

Floats = NDArray[np.float64]
"""An array of double precision."""

MIN_RECORD = 20
"""The fewest margins from which a level is computed; with fewer nothing is new."""

CLIP = 1.0
"""Deviations up to which one sample counts where a window is judged as a whole: no sample may decide alone."""

_MEASURED_EVERY = 20
"""Levels are measured again when one part in so many of a record has changed."""


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
    """Returns the log alpha below which a share `rate` of margins like the recorded ones (..., R) lies, (...,).

    Above one in twenty this is the quantile. Below, where samples are few, the lower tail is taken as exponential:
    beyond the quantiles at 5 and 25 %, or beyond those at 25 and 50 % where that is higher. An expert that errs has two
    kinds of margins, and those of its errors, up to a quarter of all, say nothing about the tail of the others. Rows of
    fewer than :data:`MIN_RECORD` margins, empty places being NaN, have -inf: nothing is new.
    """
    return levels(record, rate)[0]


def levels(record: Floats, rate: float) -> tuple[Floats, Floats, Floats]:
    """Returns the :func:`novelty_level`, the median, and its distance from the 16 % quantile, (...,) each."""
    half, low, quarter, twentieth, level = _nanquantiles(record, 0.5, 0.16, 0.25, 0.05, rate)
    if rate < 0.05:
        tail = quarter - (quarter - twentieth) / math.log(5) * math.log(0.25 / rate)
        of_the_right = quarter - (half - quarter) / math.log(2) * math.log(0.25 / rate)
        level = np.maximum(tail, of_the_right)
    enough = np.count_nonzero(~np.isnan(record), axis=-1) >= MIN_RECORD
    return np.where(enough, level, -np.inf), half, _scale(half, low)


def window_means(values: Floats, history: Floats, window: int) -> Floats:
    """Averages values (B, ...) over a window around each of them, (B, ...).

    Windows lie inside the batch where it is long enough, centred on the sample as far as possible; a shorter batch is
    pooled with the history (H, ...) just before it.

    Example:
        >>> window_means(np.array([1.0, 2.0, 6.0]), np.array([0.0]), window=2)
        array([1.5, 1.5, 4. ])
    """
    joined = np.concatenate([history, values])
    start, width = _window_starts(len(joined), len(values), window)
    sums = np.zeros((len(joined) + 1, *joined.shape[1:]))
    joined.cumsum(axis=0, out=sums[1:])
    return (sums[start + width] - sums[start]) / width


@lru_cache(maxsize=1024)
def _window_starts(n: int, b: int, window: int) -> tuple[NDArray[np.int64], int]:
    """Returns where the windows of the last b of n values begin, (b,), and how long they are."""
    width = min(window, n)
    first = n - b if b >= width else n - width
    return (np.arange(n - b, n) - width // 2).clip(first, n - width), width


def clipped(surprises: Floats) -> Floats:
    """Returns surprises as windows count them: those beyond one deviation, on either side, count as one."""
    # A third of what `clip` takes for a few numbers.
    return np.maximum(np.minimum(surprises, CLIP), -CLIP)


class MarginRecord(Keeps):
    """Rows of the latest margins, one for each of K experts, and the levels measured of them.

    `values` are margins (K, capacity), NaN where there is none; `levels` level, median and deviation of each row, (3,
    K), when they were measured last; `n_unmeasured` margins came since.
    """

    kept: ClassVar = {
        "values": tensor("experts", "margins", finite=False),  # more than the capacity where models were merged
        "levels": tensor(3, "experts", finite=False),
        "n_unmeasured": whole(),
    }

    def __init__(self, capacity: int, rate: float) -> None:
        self.capacity, self.rate = capacity, rate
        self.values, self.levels, self.n_unmeasured = np.zeros((0, capacity)), np.zeros((3, 0)), 0
        self._moments, self._stale = np.zeros((0, 3)), set[int]()

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        found = super().load_state_dict(state, **sizes)
        self._moments, self._stale = np.zeros((len(self.values), 3)), set(range(len(self.values)))
        return found

    def _admit(self, state: State) -> None:
        if (n := state["values"].shape[1]) < self.capacity:
            raise StateError(f"the record has {n} margins an expert; at least {self.capacity}")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_due(self) -> bool:
        """Whether it is time to measure again."""
        return self.n_unmeasured * _MEASURED_EVERY >= self.capacity

    def push(self, k: int, latest: Floats) -> None:
        """Appends margins (n,) to the row of expert k, dropping the oldest."""
        if self.values.shape[1] > self.capacity:  # records of merged models
            self.values = np.ascontiguousarray(self.values[:, -self.capacity :])
            self._stale = set(range(len(self.values)))
        self.values[k] = np.concatenate([self.values[k], latest])[-self.capacity :]
        self.n_unmeasured += len(latest)
        self._stale.add(k)

    def add_expert(self, held_out: Floats) -> None:
        """Appends a row of margins (n,), and measures."""
        self.values = np.concatenate([self.values, np.full((1, self.values.shape[1]), np.nan)])
        self.levels = np.concatenate([self.levels, np.full((3, 1), np.nan)], axis=1)
        self._moments = np.concatenate([self._moments, np.zeros((1, 3))])
        self.push(len(self.values) - 1, held_out)
        self.measure()

    def remove_expert(self, k: int) -> None:
        """Drops the row of expert k, and measures."""
        self.values, self.levels = np.delete(self.values, k, axis=0), np.delete(self.levels, k, axis=1)
        self._moments = np.delete(self._moments, k, axis=0)
        self._stale = {row - (row > k) for row in self._stale if row != k}
        self.measure()

    def move(self, by: Floats) -> None:
        """Moves every row by a number, (K,), and measures."""
        self.values += by[:, None]
        self._stale = set(range(len(self.values)))
        self.measure()

    def measure(self) -> None:
        """Brings the levels up to date; rows that did not change are left alone, so that experts may be thousands."""
        self.n_unmeasured = 0
        if self._stale:
            rows = np.array(sorted(self._stale))
            self.levels[:, rows] = np.stack(levels(self.values[rows], self.rate))
            _, median, scale = self.levels[:, rows]
            known = clipped((median[:, None] - self.values[rows]) / scale[:, None])
            self._moments[rows] = np.nansum([~np.isnan(known), known, np.square(known)], axis=2).T
            self._stale = set()

    def clipped_moments(self) -> tuple[int, float, float]:
        """Returns number, mean and deviation of all surprises as windows count them, of the rows as measured last."""
        n, total, squares = self._moments.sum(axis=0)
        mean = total / max(n, 1.0)
        return int(n), float(mean), float(np.sqrt(max(0.0, (squares - n * mean**2) / max(n - 1, 1.0))))


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
