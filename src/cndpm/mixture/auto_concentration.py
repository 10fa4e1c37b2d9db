"""The concentration of the Dirichlet process, set by what the mixture has seen.

Margins of samples that were known when they came are recorded for each expert before it learns them, so they are held
out. The level log alpha follows from that record and one number with a meaning: `novelty_rate`, how often a known
sample may be called new.

A stream is not exchangeable: what belongs together arrives together, and bears the same label. So a sample is judged
in company:

- it is new when its own margin is below the level *and* its kind agrees. Its kind are the latest samples of the same
  label: an expert that gets one of twenty wrong has known samples as strange as those of a label nobody has learned,
  but of a label nobody has learned all are strange. Without labels it is the window of consecutive samples around it;
- it is new when that window as a whole is new, no single sample counting for much, and its own margin is below the
  median.

A few strange samples among known ones stay with their experts, which is where they can be learned. Densities enter only
through margins, so a variational bound and an exact evidence serve alike.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import torch
from torch import Tensor

from cndpm.mixture.novelty import MIN_RECORD, centre_and_scale, margins, novelty_level, window_means
from cndpm.state import State

__all__ = ["AutoConcentration", "LabelWindows"]

_CLIP = 1.0
_CAP = 30.0
_MOST = 0.5


class LabelWindows:
    """How many of the latest samples of every label were strange.

    Args:
        window: How many are pooled.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._latest: dict[int, Tensor] = {}

    def push(self, strange: Tensor, labels: Tensor) -> Tensor:
        """Takes note of samples, strange (1) or not (0), (B,); returns the share around each within its label, (B,)."""
        means = torch.empty_like(strange)
        for label in set(labels.tolist()):
            mine = labels == label
            latest = self._latest.get(label, strange[:0])
            means[mine] = window_means(strange[mine], latest, self._window)
            self._latest[label] = torch.cat([latest, strange[mine]])[-self._window :]
        return means

    def shares(self, labels: Tensor) -> Tensor:
        """The share among the latest of each label given, (B,); NaN where the label was never met."""
        latest = {label: float(self._latest.get(label, torch.empty(0)).mean()) for label in set(labels.tolist())}
        return torch.tensor([latest[label] for label in labels.tolist()], dtype=torch.float64)

    def forget(self, labels: Tensor) -> None:
        """Begins anew with the labels given."""
        for label in set(labels.tolist()):
            self._latest.pop(label, None)

    def state_dict(self) -> State:
        """Everything."""
        return {str(label): latest.clone() for label, latest in self._latest.items()}

    def load_state_dict(self, state: State) -> None:
        """Restores it to the bit."""
        self._latest = {int(label): latest.cpu().clone() for label, latest in state.items()}


class AutoConcentration:
    """The record of known margins and the verdict on what comes.

    Args:
        novelty_rate: How often a known sample may be called new, about.
        window: Consecutive samples whose evidence is pooled; 1 judges each alone.
        capacity: Margins kept per expert, the latest.

    Example:
        >>> novelty = AutoConcentration(novelty_rate=0.01)
        >>> novelty.add_expert(held_out_margins, labels)
        >>> is_new = novelty.judge(log_known, log_new, labels)
    """

    def __init__(self, *, novelty_rate: float = 0.01, window: int = 10, capacity: int = 500) -> None:
        if not 0 < novelty_rate < 0.5:
            raise ValueError(f"novelty_rate is a share of known samples between 0 and 0.5; got {novelty_rate}")
        if window < 1 or capacity < MIN_RECORD:
            raise ValueError(f"window must be at least 1 and capacity at least {MIN_RECORD}; got {window}, {capacity}")
        self.novelty_rate, self.window, self.capacity = novelty_rate, window, capacity
        self.record = torch.zeros(0, capacity, dtype=torch.float64)
        self._history = torch.zeros(0, 2, dtype=torch.float64)
        self._by_label = LabelWindows(window)
        self._levels = torch.zeros(3, 0, dtype=torch.float64)
        self._windows = torch.zeros(0, dtype=torch.float64)
        self._window_level = torch.inf
        self._n_unmeasured = 0

    def add_expert(self, held_out_margins: Tensor, labels: Tensor | None = None) -> None:
        """Begins the record of a new expert with margins (H,) of samples it was not made of, and their labels (H,)."""
        margin = held_out_margins.detach().cpu().double()
        self.record = torch.cat([self.record, self.record.new_full((1, self.capacity), torch.nan)])
        self._push(len(self.record) - 1, margin)
        self._history = self._history[:0]
        self._measure()
        if labels is not None:
            self._by_label.forget(labels.cpu())
            self._by_label.push((margin < self._levels[0, -1]).double(), labels.cpu())

    def remove_expert(self, k: int) -> None:
        """Forgets expert k's record."""
        self.record = torch.cat([self.record[:k], self.record[k + 1 :]])
        self._measure()

    def log_alpha(self) -> Tensor:
        """The level of every expert, (K,)."""
        return self._levels[0].clone()

    def judge(self, log_known: Tensor, log_new: Tensor, labels: Tensor | None = None) -> Tensor:
        """Which samples are new, (B,) of booleans; margins of the known ones enter the record, before learning.

        Args:
            log_known: log n_k + log p(x, y | k), (B, K).
            log_new: log p(x, y | new), (B,).
            labels: Class indices (B,), where there are any.
        """
        margin, expert = margins(log_known, log_new)
        # A handful of numbers: one transfer, and no kernel launches for what follows.
        margin, expert = margin.detach().cpu().double(), expert.cpu()
        surprises = self._surprises(margin, expert)
        below = margin < self._levels[0, expert]
        if labels is None:
            agrees, majority = self._window_verdicts(surprises)
            is_new = (below & agrees) | (majority & (surprises > 0))
        else:
            is_new = self._judge_labelled(below, surprises, labels.cpu())
        self._observe(margin[~is_new], expert[~is_new], labelled=labels is not None)
        verdict: Tensor = is_new.to(log_known.device)
        return verdict

    def is_still_new(self, labels: Tensor) -> Tensor:
        """Whether the latest samples of each label given, (B,), are new: (B,) of booleans.

        A sample that was called new may have been a stray one of what is known, as the samples of its label that came
        later tell.
        """
        verdict: Tensor = (self._by_label.shares(labels.cpu()) > _MOST).to(labels.device)
        return verdict

    def _judge_labelled(self, below: Tensor, surprises: Tensor, labels: Tensor) -> Tensor:
        """As :meth:`judge`; what its label explains says nothing about the samples beside it."""
        explained = below & ~(self._by_label.shares(labels) <= _MOST)
        majority = torch.zeros_like(below)
        majority[~explained] = self._window_verdicts(surprises[~explained])[1]
        together = majority & (surprises > 0)
        agrees = self._by_label.push((below | together).double(), labels) > _MOST
        return (below & agrees) | together

    def _surprises(self, margin: Tensor, expert: Tensor) -> Tensor:
        """As :func:`surprise` against each one's expert, within the cap; 0 where nothing was recorded, (B,)."""
        _, median, scale = self._levels[:, expert]
        surprises: Tensor = ((median - margin) / scale).nan_to_num(nan=0.0, posinf=_CAP, neginf=-_CAP)
        return surprises

    def _window_verdicts(self, surprises: Tensor) -> tuple[Tensor, Tensor]:
        """Whether the windows' pooled evidence is surprising, and whether it is without any one sample's weight."""
        capped = torch.stack([surprises.clamp(-_CAP, _CAP), surprises.clamp(-_CLIP, _CLIP)], dim=1)
        pooled, plain = window_means(capped, self._history, self.window).unbind(dim=1)
        joined = torch.cat([self._history, capped])
        self._history = joined[max(0, len(joined) - self.window + 1) :]
        majority = plain > self._window_level
        # Windows overlap; one for each stretch of their length says enough about what known windows are like.
        self._windows = torch.cat([self._windows, -plain[~majority][:: self.window]])[-self.capacity :]
        return pooled > self._window_level, majority

    def _observe(self, margin: Tensor, expert: Tensor, *, labelled: bool) -> None:
        """Notes margins of known samples: where there are no labels, of the batch's most frequent expert alone.

        The few that went to others are mostly strays that nobody explains well. In a long stage they would become what
        those experts' own samples are taken to be like, and what is new would pass for known.
        """
        noted = expert if labelled or not len(expert) else expert.mode().values.reshape(1)
        for k in set(noted.tolist()):
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
        median, scale = centre_and_scale(self.record)
        self._levels = torch.stack([novelty_level(self.record, self.novelty_rate), median, scale])
        known = ((median[:, None] - self.record) / scale[:, None]).clamp(-_CLIP, _CLIP)
        known = known[~known.isnan()]
        self._window_level = torch.inf
        if len(known) >= MIN_RECORD:
            deviation = float(known.std()) / math.sqrt(self.window)
            normal = float(known.mean()) + NormalDist().inv_cdf(1 - self.novelty_rate) * deviation
            # Known windows vary more than independent samples would.
            seen = -float(novelty_level(self._windows, self.novelty_rate)) if len(self._windows) >= 40 else normal
            self._window_level = min(max(normal, seen), (normal + _CLIP) / 2)

    def state_dict(self) -> State:
        """Record, window and what was last measured."""
        return {
            "record": self.record.clone(),
            "history": self._history.clone(),
            "by_label": self._by_label.state_dict(),
            "windows": self._windows.clone(),
            "levels": self._levels.clone(),
            "window_level": torch.tensor(self._window_level, dtype=torch.float64),
            "n_unmeasured": self._n_unmeasured,
        }

    def load_state_dict(self, state: State) -> None:
        """Restores the above to the bit."""
        self.record, self._history = state["record"].cpu().clone(), state["history"].cpu().clone()
        self._by_label.load_state_dict(state["by_label"])
        self._levels, self._window_level = state["levels"].cpu().clone(), float(state["window_level"])
        self._windows, self._n_unmeasured = state["windows"].cpu().clone(), state["n_unmeasured"]
