"""The present: what holds now for data like the latest, and how far it may answer for a place and for a label.

Representations are fitted on the first rows and again when five times as many have come; later on when rows leave the
range that they were fitted for. What was learned of older rows in other features is given up then; the experts keep it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.chunks import Samples
from cndpm.experts.features import FeatureMap, FourierFeatures, IdentityFeatures, StepFeatures
from cndpm.experts.pool import ClassFamily, Family, ValueFamily
from cndpm.learner import Footprint
from cndpm.mixture import currency, log_gate
from cndpm.model.context.recent_rows import RecentRows, usual_range
from cndpm.model.context.rules import Features, Rules
from cndpm.state import State

__all__ = ["Present"]

_FITTED_AT = (20, 100, 500)
"""Rows after which representations are fitted, the later times anew, as long as there is one rule."""

_WATCHED = 100
"""The latest rows that tell whether places and labels are of the present, and whether the range was left."""

_WITNESSES = 50
"""Rows of them that tell which labels are recent, as many as the gate is asked about, and between two questions."""

_MOST_OUTSIDE = 0.3
"""The share of the latest rows outside the range at which representations are fitted anew."""

_KEEPS: list[tuple[float, ...]] = [(0.95, 0.98, 0.995, 0.999), (0.97, 0.99, 0.997), (0.97, 0.99, 0.997)]
"""Part of a sample that recent models keep after the next one: few features bear shorter windows than many."""


class Present:
    """Learns what holds now.

    Args:
        for_classes: Whether targets are class indices, or values.
        n_outputs: Number of values.
        n_recent: The latest rows kept.
        n_features: Random features, or steps, of a representation.
        evidence: Nats by which models of the latest samples must out-predict a rule to found another one.
        n_rules: Rules kept at most.
        seed: Of the representations' random choices.
        device: Where the experts live; the present lives on the host.

    Example:
        >>> x = torch.randn(1200, 3, generator=torch.Generator().manual_seed(0))
        >>> y = (x[:, 0] > 0).long()
        >>> sizes = {"n_outputs": 1, "n_recent": 500, "n_features": 50, "n_rules": 8}
        >>> present = Present(for_classes=True, evidence=20.0, seed=0, **sizes)
        >>> for start in range(0, 1200, 10):  # the rule is reversed in the middle
        ...     part = slice(start, start + 10)
        ...     present.learn(Samples(x[part]), y[part] if start < 800 else 1 - y[part], torch.zeros(10, 2))
        >>> present.n_rules
        2
    """

    def __init__(
        self,
        *,
        for_classes: bool,
        n_outputs: int,
        n_recent: int,
        n_features: int,
        evidence: float,
        n_rules: int,
        seed: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self._device = torch.device(device)
        self._family: Family = ClassFamily() if for_classes else ValueFamily()
        self.for_classes, self._n_features = for_classes, n_features
        self._width = 0 if for_classes else n_outputs
        self._evidence, self._most_rules = evidence, n_rules
        self._generator = torch.Generator().manual_seed(seed)
        self.rows = RecentRows(n_recent)
        self.n_seen = self._n_fits = 0
        self._counts = np.zeros(0)
        self._outside = np.zeros(0)
        self._maps: list[FeatureMap] = []
        self._rules: Rules | None = None
        self._low = self._high = torch.zeros(0)
        self._shift, self._scale = np.zeros(0), np.ones(0)
        self._current = torch.zeros(0, dtype=torch.float64)
        self._asked_at = 0
        self._fit = object()

    @property
    def n_rules(self) -> int:
        """Rules known; none before the first rows."""
        return 0 if self._rules is None else self._rules.n_rules

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all models and representations."""
        models = 0 if self._rules is None else self._rules.n_numbers_kept
        return models + sum(part.n_numbers_kept for part in self._maps)

    def added_to(self, kept: Footprint) -> Footprint:
        """Returns a footprint with the models and rows of the present in it."""
        return replace(
            kept,
            n_numbers_kept=kept.n_numbers_kept + self.n_numbers_kept,
            memory_samples=kept.memory_samples + len(self.rows),
            memory_bytes=kept.memory_bytes + self.rows.n_bytes,
        )

    @property
    def events(self) -> list[tuple[int, str, int]]:
        """Events of rules: the sample's number, "founded", "renewed" or "returned", the rule's index."""
        return [] if self._rules is None else self._rules.events

    # Answers

    def answer(self, samples: Samples, experts: Tensor) -> Tensor | None:
        """Returns log-probabilities (B, C), or mean and variance (B, 2, n_outputs); None before the first rows.

        Args:
            samples: (B, ...).
            experts: What the mixture of experts answers, of the same shape, on any device.
        """
        if self._rules is None:
            return None
        mixed = self._rules.answer(self._features(samples), self._of_experts(experts)).mixed
        if not self.for_classes:
            mixed = np.stack([mixed[:, 0] * self._scale + self._shift, mixed[:, 1] * self._scale**2], axis=1)
        return torch.from_numpy(mixed)

    def current(self, n_experts: int, n: int) -> Tensor:
        """Returns how current the places of n components are, (n,): the experts', and then that of what waits.

        Args:
            n_experts: Experts; as long as the gate was not asked about them they all are current.
            n: Components, one more where samples wait in the memory.
        """
        known = self._current if len(self._current) == n_experts else torch.ones(n_experts, dtype=torch.float64)
        return torch.cat([known, torch.ones(n - n_experts, dtype=torch.float64)])

    def recent_labels(self, n_classes: int) -> Tensor:
        """Returns how recent every class is, (n_classes,)."""
        counts = np.zeros(n_classes)
        counts[: len(self._counts)] = self._counts[:n_classes]
        latest = np.bincount(self.rows.y[-_WITNESSES:].numpy(), minlength=n_classes)[:n_classes].astype(np.float64)
        expected = latest.sum() * counts / max(1.0, counts.sum())
        recent = currency(torch.from_numpy(latest), torch.from_numpy(expected), pseudo=1.0)
        return recent * torch.from_numpy(counts > 0)  # of a class that it has not met the present knows nothing

    def _of_experts(self, answer: Tensor) -> NDArray[np.float64]:
        """Returns the experts' answer for the classes met, or in the units of the rules' targets."""
        values: NDArray[np.float64] = answer.detach().cpu().double().numpy()
        if self.for_classes:
            return values[:, : self._width]
        return np.stack([(values[:, 0] - self._shift) / self._scale, values[:, 1] / self._scale**2], axis=1)

    def _features(self, samples: Samples) -> Features:
        """Returns the features of every representation, (B, d) each."""

        def compute(chunk: Samples) -> NDArray[np.float64]:
            return self._joined(chunk.x.cpu())

        joined = samples.derive("representations", self._fit, compute)
        return self._cut(joined)

    def _joined(self, rows: Tensor) -> NDArray[np.float64]:
        rows = rows.clamp(self._low, self._high)
        return torch.cat([part(rows) for part in self._maps], dim=1).double().numpy()

    def _cut(self, joined: NDArray[np.float64]) -> Features:
        ends = np.cumsum([part.n_features for part in self._maps])
        return np.split(joined, ends[:-1], axis=1)

    # Learning

    def learn(self, samples: Samples, y: Tensor, experts: Tensor) -> None:
        """Learns a batch: what was answered is weighed, then it is learned.

        Args:
            samples: (B, ...).
            y: Class indices (B,) or targets (B, n_outputs), on the host.
            experts: What the mixture of experts answers before it learns them, (B, C) or (B, 2, n_outputs).
        """
        rows = samples.x.cpu()
        self.n_seen += len(rows)
        if self.for_classes:
            self._meet(y)
        self.rows.add(rows, y)
        if self._rules is not None:
            features, targets = self._features(samples), self._targets(y.numpy())
            answer = self._rules.answer(features, self._of_experts(experts))
            self._rules.n_seen = self.n_seen
            self._rules.learn(features, targets, answer, self._recall)
        if self._is_fit_due(rows):
            self._begin()

    def forget(self) -> None:
        """Begins anew, as if no row had come; the experts answer alone until some have."""
        self.rows = RecentRows(self.rows.capacity)
        self.n_seen = self._n_fits = self._asked_at = 0
        self._rules, self._maps = None, []
        self._counts, self._outside = np.zeros_like(self._counts), np.zeros(0)
        self._current, self._fit = torch.zeros(0, dtype=torch.float64), object()

    def _recall(self, n: int) -> tuple[Features, NDArray[Any]]:
        return self._cut(self._joined(self.rows.x[-n:])), self._targets(self.rows.y[-n:].numpy())

    def _targets(self, y: NDArray[Any]) -> NDArray[Any]:
        return y if self.for_classes else (y.astype(np.float64) - self._shift) / self._scale

    def _meet(self, y: Tensor) -> None:
        n_classes = max(self._width, int(y.max()) + 1)
        if n_classes > self._width:
            self._width = n_classes
            self._counts = np.pad(self._counts, (0, n_classes - len(self._counts)))
            if self._rules is not None:
                self._rules.admit(n_classes)
        self._counts += np.bincount(y.numpy(), minlength=n_classes)

    def _is_fit_due(self, rows: Tensor) -> bool:
        """Notes which rows were outside the range; says whether representations are to be fitted."""
        if self._rules is None:
            return self.n_seen >= _FITTED_AT[0]
        outside = ((rows < self._low) | (rows > self._high)).any(dim=1).numpy()
        self._outside = np.append(self._outside, outside)[-_WATCHED:]
        if len(self._outside) == _WATCHED and self._outside.mean() > _MOST_OUTSIDE:
            return True
        is_early = self._n_fits < len(_FITTED_AT) and self.n_seen >= _FITTED_AT[self._n_fits]
        return is_early and self.n_rules == 1

    def _begin(self) -> None:
        """Fits the representations on the latest rows and learns these anew."""
        left_range = len(self._outside) == _WATCHED and self._outside.mean() > _MOST_OUTSIDE
        rows = self.rows.x[-_WATCHED:] if left_range else self.rows.x
        self._low, self._high = usual_range(rows)
        self._maps = self._new_maps()
        for part in self._maps:
            part.fit(rows.clamp(self._low, self._high), generator=self._generator)
        if not self.for_classes:
            y = self.rows.y.double().numpy()
            self._shift, self._scale = y.mean(axis=0), np.maximum(y.std(axis=0), 1e-9)
        before, self._rules = self._rules, self._new_rules()
        if before is not None:
            self._rules.inherit(before)
        self._n_fits, self._outside, self._fit = self._n_fits + 1, np.zeros(0), object()
        features, targets = self._recall(len(rows))
        for start in range(0, len(targets), 10):
            self._rules.begin([z[start : start + 10] for z in features], targets[start : start + 10])

    def _new_maps(self) -> list[FeatureMap]:
        n = self._n_features
        return [IdentityFeatures(), FourierFeatures(n, include_input=True), StepFeatures(n)]

    def _new_rules(self) -> Rules:
        return Rules(
            self._family,
            _KEEPS,
            sizes=[part.n_features for part in self._maps],
            width=self._width,
            evidence=self._evidence,
            n_rules=self._most_rules,
            served=300,
        )

    def watch(self, bank: Bank) -> None:
        """Asks the gate from time to time which experts' places the latest rows are in."""
        counts = bank.counts
        is_due = self.n_seen - self._asked_at >= _WITNESSES or len(counts) != len(self._current)
        if len(counts) < 2 or not is_due or not len(self.rows):
            return
        self._asked_at = self.n_seen
        witnesses = self.rows.x[-_WATCHED:][-2 * _WITNESSES :: 2]
        log_density = bank.log_density(Samples(witnesses.to(self._device)), exact=False).cpu()
        latest = log_gate(log_density, counts).exp().mean(dim=0)
        self._current = currency(latest, counts / counts.sum())

    # State

    def state_dict(self) -> State:
        """Returns everything."""
        return {
            "rows": self.rows.state_dict(),
            "generator": self._generator.get_state(),
            "maps": [part.state_dict() for part in self._maps],
            "rules": None if self._rules is None else self._rules.state_dict(),
            "numbers": [self.n_seen, self._n_fits, self._width, self._asked_at],
            **{name: torch.tensor(getattr(self, f"_{name}")) for name in _ARRAYS},
            **{name: getattr(self, f"_{name}").clone() for name in _TENSORS},
        }

    def load_state_dict(self, state: State) -> None:
        """Restores it to the bit."""
        self.rows.load_state_dict(state["rows"])
        self._generator.set_state(state["generator"].cpu())
        self.n_seen, self._n_fits, self._width, self._asked_at = state["numbers"]
        for name in _ARRAYS:
            setattr(self, f"_{name}", state[name].cpu().numpy().copy())
        for name in _TENSORS:
            setattr(self, f"_{name}", state[name].cpu().clone())
        self._maps = self._new_maps() if state["maps"] else []
        for part, saved in zip(self._maps, state["maps"], strict=True):
            part.load_state_dict(_on_host(saved))
        self._rules = None if state["rules"] is None else self._new_rules()
        if self._rules is not None:
            self._rules.load_state_dict(state["rules"])
        self._fit = object()


_ARRAYS = ("counts", "outside", "shift", "scale")
_TENSORS = ("low", "high", "current")


def _on_host(state: Any) -> Any:
    if isinstance(state, dict):
        return {name: _on_host(value) for name, value in state.items()}
    return state.cpu() if isinstance(state, Tensor) else state
