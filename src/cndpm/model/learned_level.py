"""A level of novelty, the concentration of the Dirichlet process, that the model sets by what it has seen.

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
from collections.abc import Sequence
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.bank import Bank, Evidence
from cndpm.mixture import Routing, margins, route
from cndpm.mixture.margin_levels import CLIP, MIN_RECORD, Floats, MarginRecord, clipped, novelty_level, window_means
from cndpm.model.joined_levels import joined_levels, united_levels
from cndpm.model.novelty import Novelty
from cndpm.state import State, StateError, expect, part, tensor

_CAP = 30.0
"""Deviations up to which one sample counts where its margin is judged with its window: all beyond is as strange."""

_MOST = 0.5
"""The share of strange samples above which a label is new."""

_MIN_WINDOWS = 40
"""Windows of known samples that tell how windows vary; before, they are taken to vary as independent samples would."""

Labels = NDArray[np.int64]
Flags = NDArray[np.bool_]


class LabelWindows:
    """Counts how many of the latest samples of every label were strange."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._latest: dict[int, Floats] = {}

    def push(self, strange: Flags, labels: Labels) -> Floats:
        """Takes note of samples, strange or not; returns the share of strange ones around each in its label, (B,)."""
        means = np.empty(len(strange))
        for label in set(labels.tolist()):
            mine = labels == label
            latest, values = self._latest.get(label, np.empty(0)), strange[mine].astype(np.float64)
            strange_lately = values.any() or latest.any()
            means[mine] = window_means(values, latest, self._window) if strange_lately else 0.0
            self._latest[label] = np.concatenate([latest, values])[-self._window :]
        return means

    def shares(self, labels: Labels) -> Floats:
        """Returns the share of strange samples among the latest of each label given, (B,); NaN before the first."""
        known = {label: self._latest.get(label) for label in set(labels.tolist())}
        means = {label: math.nan if latest is None else float(latest.mean()) for label, latest in known.items()}
        return np.array([means[label] for label in labels.tolist()])

    def forget(self, labels: Labels) -> None:
        """Begins anew with the labels given."""
        for label in set(labels.tolist()):
            self._latest.pop(label, None)

    def state_dict(self) -> State:
        return {str(label): torch.tensor(latest) for label, latest in self._latest.items()}

    def load_state_dict(self, state: State) -> None:
        for label in state:
            if not (label.isascii() and label.isdecimal()):
                raise StateError(f"labels are numbered from 0; got {label[:20]!r}")
            if not expect(state, {label: tensor("latest")})["latest"]:
                raise StateError(f"label {label} has no samples, and is noted")
        self._latest = {
            int(label): np.array(latest.detach().cpu().numpy(), dtype=np.float64) for label, latest in state.items()
        }


class LearnedLevel(Novelty):
    """Keeps a record of known margins, and calls samples new whose margins fall below the level that follows from it.

    About `novelty_rate` of known samples are called new. The evidence of `window` consecutive samples is pooled; of
    each expert the `capacity` latest margins are kept.
    """

    kept: ClassVar = {
        "record": part(),
        "history": tensor("samples", 2),
        "by_label": part(),
        "windows": tensor("windows"),
        "window_level": tensor(finite=False),
    }

    def __init__(self, *, novelty_rate: float = 0.01, window: int = 10, capacity: int = 500) -> None:
        if not 1e-9 <= novelty_rate < 0.5:
            raise ValueError(f"novelty_rate is a share of known samples between 1e-9 and 0.5; got {novelty_rate}")
        if window < 1 or capacity < MIN_RECORD:
            raise ValueError(f"window must be at least 1 and capacity at least {MIN_RECORD}; got {window}, {capacity}")
        self.novelty_rate, self.window, self.capacity = novelty_rate, window, capacity
        self._record = MarginRecord(capacity, novelty_rate)
        self._history = np.zeros((0, 2))
        self._by_label = LabelWindows(window)
        self._windows = np.zeros(0)
        self._window_level = np.array(math.inf)

    def route(self, evidence: Evidence, labels: Tensor | None) -> Routing:
        log_known, log_new = evidence
        if not log_known.shape[1]:
            return Routing(torch.ones(len(log_known), dtype=torch.bool), log_known)
        return route(log_known, self._judge(log_known.numpy(), log_new.numpy(), labels))

    def is_still_new(self, labels: Tensor) -> Tensor:
        return torch.from_numpy(self._by_label.shares(labels.numpy()) > _MOST)

    def add_expert(self, held_out: Evidence, labels: Tensor | None) -> None:
        margin, own = held_out.log_new, torch.zeros(0, dtype=torch.bool)
        if len(held_out.log_known):
            margin, expert = margins(held_out.log_known, held_out.log_new)
            own = expert == held_out.log_known.shape[1] - 1
        values = margin[own].numpy()
        self._record.add_expert(values)
        self._history = self._history[:0]
        self._measure_windows()
        if labels is not None and len(own):
            self._by_label.forget(labels[own].numpy())
            self._by_label.push(values < self._record.levels[0, -1], labels[own].numpy())

    def remove_expert(self, k: int) -> None:
        self._record.remove_expert(k)
        self._measure_windows()

    def follow(self, drift: Tensor) -> None:
        self._record.move(np.nan_to_num(drift.numpy()[: len(self._record)]))
        self._measure_windows()

    def _judge(self, known: Floats, new: Floats, labels: Tensor | None) -> Tensor:
        """Returns which samples are new, (B,) bool."""
        expert = known.argmax(axis=1)
        margin = known[np.arange(len(known)), expert] - new
        level, median, scale = self._record.levels[:, expert]
        surprises = (median - margin) / scale
        surprises[np.isnan(surprises)] = 0.0
        surprises = np.maximum(np.minimum(surprises, _CAP), -_CAP)
        below = margin < level
        if labels is None:
            agrees, majority = self._window_verdicts(surprises)
            is_new = (below & agrees) | (majority & (surprises > 0))
        else:
            is_new = self._judge_labelled(below, surprises, labels.numpy())
        self._observe(margin[~is_new], expert[~is_new], labelled=labels is not None)
        return torch.from_numpy(is_new)

    def _judge_labelled(self, below: Flags, surprises: Floats, labels: Labels) -> Flags:
        """Judges labelled samples: what its label explains says nothing about the samples beside it."""
        explained = below & ~(self._by_label.shares(labels) <= _MOST)
        majority = np.zeros_like(below)
        majority[~explained] = self._window_verdicts(surprises[~explained])[1]
        together = majority & (surprises > 0)
        agrees = self._by_label.push(below | together, labels) > _MOST
        verdict: Flags = (below & agrees) | together
        return verdict

    def _window_verdicts(self, surprises: Floats) -> tuple[Flags, Flags]:
        """Returns whether windows are surprising as a whole, and whether they are without any one sample's weight."""
        capped = np.stack([surprises, clipped(surprises)], axis=1)
        pooled, plain = window_means(capped, self._history, self.window).T
        joined = np.concatenate([self._history, capped])
        self._history = joined[max(0, len(joined) - self.window + 1) :]
        majority = plain > self._window_level
        # Windows overlap; one for each stretch of their length says enough about what known windows are like.
        known = -plain[~majority][:: self.window]
        self._windows = np.concatenate([self._windows, known])[-self.capacity :]
        return pooled > self._window_level, majority

    def _observe(self, margin: Floats, expert: Labels, *, labelled: bool) -> None:
        """Notes margins of known samples: where there are no labels, of the batch's most frequent expert alone.

        The few that went to others are mostly strays that nobody explains well. In a long stage they would become what
        those experts' own samples are taken to be like, and what is new would pass for known.
        """
        noted = expert if labelled or not len(expert) else np.array([np.bincount(expert).argmax()])
        for k in set(noted.tolist()):
            self._record.push(k, margin[expert == k])
        if self._record.is_due:
            self._record.measure()
            self._measure_windows()

    def _measure_windows(self) -> None:
        """Measures the level of windows, their mean surprise, from the record."""
        self._window_level = np.array(math.inf)
        n_known, mean, deviation = self._record.clipped_moments()
        if n_known >= MIN_RECORD:
            normal = mean + NormalDist().inv_cdf(1 - self.novelty_rate) * (deviation / math.sqrt(self.window))
            # Known windows vary more than independent samples would.
            seen = (
                -float(novelty_level(self._windows, self.novelty_rate))
                if len(self._windows) >= _MIN_WINDOWS
                else normal
            )
            self._window_level = np.array(min(max(normal, seen), (normal + CLIP) / 2))

    @property
    def n_judged(self) -> int:
        return len(self._record)

    def explained(self, bank: Bank, sources: Sequence[int]) -> Tensor:
        return bank.explained(torch.from_numpy(self._record.levels[0].copy()), sources)

    def extend(self, other: Novelty) -> None:
        self.load_state_dict(joined_levels(self.state_dict(), other.state_dict()))

    def unite(self, groups: Sequence[Sequence[int]], gains: Tensor) -> None:
        self.load_state_dict(united_levels(self.state_dict(), groups, gains))
        self._record.measure()
        self._measure_windows()

    def relabel(self, mapping: Sequence[int]) -> None:
        state = self._by_label.state_dict()
        self._by_label.load_state_dict({str(mapping[int(label)]): latest for label, latest in state.items()})
