"""When is a sample new? The concentration of the Dirichlet process, set by what the mixture has seen.

A sample is new when log alpha + log p(x, y | new) exceeds log n_k + log p(x, y | k) for every expert k, that is when
its *margin* g = max_k (log n_k + log p(x, y | k)) - log p(x, y | new) lies below log alpha. Margins of samples that
were known when they came are recorded for each expert before it learns them, so they are held out. The level log alpha
follows from that record and one number with a meaning: `novelty_rate`, how often a known sample may be called new.

A stream is not exchangeable: what arrives together belongs together. So a sample is judged with its window, the
`window` consecutive samples around it:

- it is called new when its own margin is below the level *and* the window's pooled evidence agrees, or
- when the window as a whole is new, no single sample counting for much, and its own margin is below the median.

A few strange samples among known ones stay with their experts unless they are beyond all that is known, such as a label
no expert has seen. Densities enter only through margins, so a variational bound and an exact evidence serve alike.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from cndpm.state import State

__all__ = ["AutoConcentration", "accepts_expert", "margins", "novelty_level", "surprise", "window_means"]

_CLIP = 3.0
_CAP = 30.0
_MIN_RECORD = 20


def margins(log_known: Tensor, log_new: Tensor) -> tuple[Tensor, Tensor]:
    """The margin g of every sample and the expert it is taken against, both (B,).

    Args:
        log_known: log n_k + log p(x, y | k), (B, K), K at least 1.
        log_new: log p(x, y | new), (B,).
    """
    best, expert = log_known.max(dim=1)
    return best - log_new, expert


def novelty_level(record: Tensor, rate: float) -> Tensor:
    """log alpha such that a share `rate` of margins like those of `record` (..., R) lies below it, (...,).

    Empty places of the record are NaN.

    Above one in twenty this is the quantile; below, where few samples lie, the lower tail is taken as exponential
    beyond its quantiles at 5 and 25 %. With fewer than 20 margins nothing is new: -inf.
    """
    quarter, twentieth, level = _nanquantiles(record, 0.25, 0.05, rate)
    if rate < 0.05:
        level = twentieth - (quarter - twentieth) / math.log(5) * math.log(0.05 / rate)
    enough = (~record.isnan()).sum(dim=-1) >= _MIN_RECORD
    return torch.where(enough, level, -torch.inf)


def surprise(margin: Tensor, record: Tensor) -> Tensor:
    """How far margins (..., N) lie below the median of records (..., R), in units of the lower side's deviation."""
    median, scale = _centre_and_scale(record)
    return (median[..., None] - margin) / scale[..., None]


def window_means(values: Tensor, history: Tensor, window: int) -> Tensor:
    """Mean over the window of every one of B values, given the H values before them: (B,).

    Windows lie inside the batch where it is long enough, centred on the sample as far as possible; a shorter batch is
    pooled with the history just before it.
    """
    joined = np.concatenate([history.numpy(), values.numpy()])
    n, b = len(joined), len(values)
    width = min(window, n)
    first = n - b if b >= width else n - width
    start = (np.arange(n - b, n) - width // 2).clip(first, n - width)
    sums = np.concatenate([[0.0], joined.cumsum()])
    return torch.from_numpy((sums[start + width] - sums[start]) / width)


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


class AutoConcentration:
    """The record of known margins and the verdict on what comes.

    Args:
        novelty_rate: How often a known sample may be called new, about.
        window: Consecutive samples whose evidence is pooled; 1 judges each alone.
        capacity: Margins kept per expert, the latest.

    Example:
        >>> novelty = AutoConcentration(novelty_rate=0.01)
        >>> novelty.add_expert(held_out_margins)
        >>> is_new = novelty.judge(log_known, log_new)
    """

    def __init__(self, *, novelty_rate: float = 0.01, window: int = 10, capacity: int = 500) -> None:
        if not 0 < novelty_rate < 0.5:
            raise ValueError(f"novelty_rate is a share of known samples between 0 and 0.5; got {novelty_rate}")
        if window < 1 or capacity < _MIN_RECORD:
            raise ValueError(f"window must be at least 1 and capacity at least {_MIN_RECORD}; got {window}, {capacity}")
        self.novelty_rate, self.window, self.capacity = novelty_rate, window, capacity
        self.record = torch.zeros(0, capacity, dtype=torch.float64)
        self._history = torch.zeros(0, 2, dtype=torch.float64)
        self._levels = torch.zeros(3, 0, dtype=torch.float64)
        self._windows = torch.zeros(0, dtype=torch.float64)
        self._window_level = torch.inf
        self._n_unmeasured = 0

    def add_expert(self, held_out_margins: Tensor) -> None:
        """Begins the record of a new expert with margins of samples it was not made of, (H,)."""
        self.record = torch.cat([self.record, self.record.new_full((1, self.capacity), torch.nan)])
        self._push(len(self.record) - 1, held_out_margins.detach().cpu().double())
        self._history = self._history[:0]
        self._measure()

    def remove_expert(self, k: int) -> None:
        """Forgets expert k's record."""
        self.record = torch.cat([self.record[:k], self.record[k + 1 :]])
        self._measure()

    def log_alpha(self) -> Tensor:
        """The level of every expert, (K,)."""
        return self._levels[0].clone()

    def judge(self, log_known: Tensor, log_new: Tensor) -> Tensor:
        """Which samples are new, (B,) of booleans; margins of the known ones enter the record, before learning.

        Args:
            log_known: log n_k + log p(x, y | k), (B, K).
            log_new: log p(x, y | new), (B,).
        """
        margin, expert = margins(log_known, log_new)
        # A handful of numbers: one transfer, and no kernel launches for what follows.
        margin, expert = margin.detach().cpu().double(), expert.cpu()
        level, median, scale = self._levels[:, expert]
        surprises = ((median - margin) / scale).nan_to_num(nan=0.0, posinf=_CAP, neginf=-_CAP)
        pooled, majority = self._window_verdicts(surprises)
        is_new = ((margin < level) & pooled) | (majority & (surprises > 0))
        self._observe(margin[~is_new], expert[~is_new])
        verdict: Tensor = is_new.to(log_known.device)
        return verdict

    def _window_verdicts(self, surprises: Tensor) -> tuple[Tensor, Tensor]:
        """Whether the windows' pooled evidence is surprising, and whether it is without any one sample's weight."""
        capped = torch.stack([surprises.clamp(-_CAP, _CAP), surprises.clamp(-_CLIP, _CLIP)], dim=1)
        means = [window_means(capped[:, i], self._history[:, i], self.window) for i in range(2)]
        joined = torch.cat([self._history, capped])
        self._history = joined[max(0, len(joined) - self.window + 1) :]
        majority = means[1] > self._window_level
        # Windows overlap; one for each stretch of their length says enough about what known windows are like.
        self._windows = torch.cat([self._windows, -means[1][~majority][:: self.window]])[-self.capacity :]
        return means[0] > self._window_level, majority

    def _observe(self, margin: Tensor, expert: Tensor) -> None:
        for k in set(expert.tolist()):
            self._push(k, margin[expert == k])
        if self._n_unmeasured * 20 >= self.capacity:
            self._measure()

    def _push(self, k: int, values: Tensor) -> None:
        """Appends to a row, dropping the oldest."""
        self.record[k] = torch.cat([self.record[k], values])[-self.capacity :]
        self._n_unmeasured += len(values)

    def _measure(self) -> None:
        """Levels, medians and scales (3, K) from the record, and the mean surprise that windows exceed at the rate.

        Measured again when a twentieth of a row has changed.
        """
        self._n_unmeasured = 0
        median, scale = _centre_and_scale(self.record)
        self._levels = torch.stack([novelty_level(self.record, self.novelty_rate), median, scale])
        known = surprise(self.record, self.record).clamp(-_CLIP, _CLIP)
        known = known[~known.isnan()]
        self._window_level = torch.inf
        if len(known) >= _MIN_RECORD:
            deviation = float(known.std()) / math.sqrt(self.window)
            normal = float(known.mean()) + NormalDist().inv_cdf(1 - self.novelty_rate) * deviation
            # Known windows vary more than independent samples would.
            seen = -float(novelty_level(self._windows, self.novelty_rate)) if len(self._windows) >= 40 else normal
            self._window_level = min(max(normal, seen), 2 * normal)

    def state_dict(self) -> State:
        """Record, window and what was last measured."""
        return {
            "record": self.record.clone(),
            "history": self._history.clone(),
            "windows": self._windows.clone(),
            "levels": self._levels.clone(),
            "window_level": torch.tensor(self._window_level, dtype=torch.float64),
            "n_unmeasured": self._n_unmeasured,
        }

    def load_state_dict(self, state: State) -> None:
        """Restores the above to the bit."""
        self.record, self._history = state["record"].cpu().clone(), state["history"].cpu().clone()
        self._levels, self._window_level = state["levels"].cpu().clone(), float(state["window_level"])
        self._windows, self._n_unmeasured = state["windows"].cpu().clone(), state["n_unmeasured"]


def _centre_and_scale(record: Tensor) -> tuple[Tensor, Tensor]:
    """Median and lower-side deviation of records (..., R), both (...,)."""
    median, low = _nanquantiles(record, 0.5, 0.16)
    return median, (median - low).clamp_min(1e-6 * (1 + median.abs()))


def _nanquantiles(record: Tensor, *shares: float) -> Tensor:
    """Quantiles over the last dimension without NaN, stacked in front, (n, ...); NaN for empty rows.

    With arrays and one sort for all: the record is measured again with every few batches.
    """
    values = np.sort(record.numpy().reshape(-1, record.shape[-1]), axis=1)  # NaN last
    last = (np.count_nonzero(~np.isnan(values), axis=1) - 1).clip(min=0)
    position = np.array(shares)[:, None] * last
    below, row = position.astype(np.int64), np.arange(len(values))
    low, high = values[row, below], values[row, np.minimum(below + 1, last)]
    return torch.from_numpy(low + (high - low) * (position - below)).reshape(len(shares), *record.shape[:-1])
