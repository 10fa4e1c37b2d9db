"""The present: what holds now for data like the latest, and how far it may answer for a place and for a label.

Representations are fitted on the first rows and again when five times as many have come; later on when rows leave the
range that they were fitted for. What was learned in the range that was left answers for rows of that range, until rows
come there that are predicted better without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.chunks import Samples
from cndpm.experts.pool import ClassFamily, Family, ValueFamily
from cndpm.learner import Footprint
from cndpm.mixture import currency, log_gate
from cndpm.model.context.form import check_present
from cndpm.model.context.former import Former, Formers, Units
from cndpm.model.context.labels import Labels
from cndpm.model.context.recent_rows import RecentRows
from cndpm.model.context.representations import Representations
from cndpm.model.context.rules import Features, Rules
from cndpm.model.context.schedule import WATCHED, Schedule
from cndpm.model.context.weights import Answer
from cndpm.state import State, StateError

__all__ = ["Present"]

_WITNESSES = 50
"""Rows of them that tell which labels are recent, as many as the gate is asked about, and between two questions."""

_WORSE = 5
"""Times the evidence that founds a rule by which rows of a range that was left must be predicted better without it."""

_MOST_CLASSES = 128
"""Classes beyond which the experts answer alone: what is kept here grows with the square of their number."""

_KEEPS: list[tuple[float, ...]] = [(0.95, 0.98, 0.995, 0.999), (0.97, 0.99, 0.997), (0.97, 0.99, 0.997)]
"""Part of a sample that recent models keep after the next one: few features bear shorter windows than many."""


class _Asked(NamedTuple):
    """Keeps the last answer, for rows that may be learned next."""

    rows: Tensor
    experts: Tensor
    features: Features
    answer: Answer


class Present:
    """Learns what holds now.

    Args:
        n_columns: Values of a row.
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
        >>> sizes = {"n_columns": 3, "n_outputs": 1, "n_recent": 500, "n_features": 50, "n_rules": 8}
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
        n_columns: int,
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
        self.for_classes, self._n_columns, self._n_features = for_classes, n_columns, n_features
        self._width = 0 if for_classes else n_outputs
        self._evidence, self._most_rules = evidence, n_rules
        self._generator = torch.Generator().manual_seed(seed)
        self.rows = RecentRows(n_recent)
        self.n_seen = 0
        self._schedule = Schedule()
        self._labels = Labels()
        self._representations = Representations(n_features)
        self._rules: Rules | None = None
        self._units = Units()
        self._formers = Formers()
        self._current = torch.zeros(0, dtype=torch.float64)
        self._asked_at = 0
        self._fit = object()
        self._asked: _Asked | None = None

    @property
    def n_rules(self) -> int:
        """Rules known; none before the first rows."""
        return 0 if self._rules is None else self._rules.n_rules

    @property
    def moment(self) -> tuple[int, object]:
        """Another one whenever something was learned, forgotten or loaded."""
        return self.n_seen, self._fit

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all models and representations."""
        models = 0 if self._rules is None else self._rules.n_numbers_kept
        return models + self._representations.n_numbers_kept + self._formers.n_numbers_kept

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
        mixed = torch.from_numpy(self._units.answer_from(self._ask(self._rules, samples, experts).answer.mixed).copy())
        for former, mine in self._owned(samples):
            mixed[mine] = former.answer(samples.x.cpu()[mine], self._of_experts(experts)[mine])
        return mixed

    def _owned(self, samples: Samples) -> list[tuple[Former, Tensor]]:
        """Returns formers that own samples, with the mask of those, (B,) bool."""
        return self._formers.owning(self._representations, samples.x.cpu()) if self._formers else []

    def _ask(self, rules: Rules, samples: Samples, experts: Tensor) -> _Asked:
        """Returns features and answers of samples; those of the same rows are not computed twice."""
        asked = self._asked
        is_known = asked is not None and (asked.experts is experts or torch.equal(asked.experts, experts))
        if asked is None or not is_known or not torch.equal(asked.rows, samples.x):
            features = self._features(samples)
            answer = rules.answer(features, self._units.answer_in(self._of_experts(experts).numpy()))
            self._asked = asked = _Asked(samples.x, experts, features, answer)
        return asked

    def current(self, samples: Samples, n_experts: int, n: int) -> Tensor:
        """Returns how current the places of n components are: the experts', and then that of what waits.

        Args:
            samples: (B, ...); what was the present for those of another scale answers for them.
            n_experts: Experts; as long as the gate was not asked about them they all are current.
            n: Components, one more where samples wait in the memory.

        Returns:
            (n,), or (B, n) where some samples are of another range.
        """
        current = torch.ones(n, dtype=torch.float64)
        if self._current.shape[0] == n_experts:
            current[:n_experts] = self._current
        if owned := self._owned(samples):
            current = current.repeat(len(samples), 1)
            for former, mine in owned:
                current[mine & former.is_whole] = 1
        return current

    def recent_labels(self, n_classes: int) -> Tensor:
        """Returns how recent every class is, (n_classes,)."""
        return self._labels.recent(self.rows.y[-_WITNESSES:], n_classes)

    def _of_experts(self, answer: Tensor) -> Tensor:
        """Returns the experts' answer on the host, for the classes met."""
        return answer.detach().cpu().double()[:, : self._width if self.for_classes else None]

    def _features(self, samples: Samples) -> Features:
        """Returns the features of every representation, (B, d) each."""
        columns = samples.derive("representations", self._fit, lambda chunk: self._representations(chunk.x.cpu()))
        return self._representations.cut(columns)

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
            if self._width > _MOST_CLASSES:
                return
        self.rows.add(rows, y)
        if self._rules is not None:
            outside = self._representations.outside(rows).numpy()
            near = ~self._representations.far_outside(rows) if outside.any() else None
            if near is None or near.all():
                self._learn(self._rules, samples, y, experts)
            elif near.any():
                self._learn(self._rules, Samples(samples.x[near.to(samples.x.device)]), y[near], experts.cpu()[near])
            for _, mine in self._formers.owning(self._representations, rows):
                outside |= mine.numpy()
            self._schedule.note(outside)
        if self._schedule.is_left:
            self.leave(WATCHED)
        elif self._schedule.is_due(self.n_seen) and self.n_rules < 2:
            self._fit_to(self.n_seen - self._schedule.begun_at)
        elif self._formers and self._schedule.is_settled:  # rows that come back to a range are not lost to it
            self._formers.give_up(_WORSE * self._evidence)

    def _learn(self, rules: Rules, samples: Samples, y: Tensor, experts: Tensor) -> None:
        asked, self._asked = self._ask(rules, samples, experts), None
        if self._formers and self._schedule.are_some_outside:
            now, heard = self._units.answer_from(asked.answer.mixed), self._of_experts(experts)
            parts = (self._representations, samples.x.cpu(), y)
            self._formers.compare(*parts, now=now, experts=heard, family=self._family)
        rules.n_seen = self.n_seen
        rules.learn(asked.features, self._units.targets(y), asked.answer, self._recall)

    def forget(self) -> None:
        """Begins anew, as if no row had come; the experts answer alone until some have."""
        self.rows = RecentRows(self.rows.capacity)
        self.n_seen = self._asked_at = 0
        self._schedule = Schedule()
        self._units, self._formers = Units(), Formers()
        self._rules = self._asked = None
        self._labels = Labels(np.zeros_like(self._labels.counts))
        self._current, self._fit = torch.zeros(0, dtype=torch.float64), object()

    def _recall(self, n: int) -> tuple[Features, Tensor]:
        near = ~self._representations.far_outside(self.rows.x[-n:])
        columns = self._representations(self.rows.x[-n:][near])
        return self._representations.cut(columns), self._units.targets(self.rows.y[-n:][near])

    def _meet(self, y: Tensor) -> None:
        n_classes = max(self._width, int(y.max()) + 1)
        if n_classes > _MOST_CLASSES and len(self.rows):
            self.forget()
        if n_classes > self._width:
            self._width, self._asked = n_classes, None
            self._formers.admit(n_classes)
            if self._rules is not None:
                self._rules.admit(n_classes)
        self._labels.count(y, n_classes)

    def leave(self, n: int, *, is_whole: bool = False) -> None:
        """Begins anew with the latest n rows, which are of another range; what was learned before is kept for its own.

        Args:
            n: At most those that are kept.
            is_whole: Whether experts of its own know the range that is left.
        """
        left = self._rules
        if left is not None:
            if not self._leave(left, self.rows.x[-n:], is_whole=is_whole):
                self._schedule.begin(self.n_seen, n)
                self._fit_to(n)
            if self._formers[-1].is_whole:
                left.retire()

    def _fit_to(self, n: int) -> None:
        """Fits the representations on the latest n rows, or as many as are kept, and learns these anew."""
        rows, y = self.rows.x[-n:], self.rows.y[-n:]
        if not self.for_classes:
            self._units = Units.of(y)
        targets = self._units.targets(y)
        self._representations.fit(rows, targets, self._generator)
        before, self._rules = self._rules, self._new_rules(self._representations, self._width)
        if before is not None:
            self._rules.inherit(before)
        self._schedule.fitted()
        self._fit, self._asked = object(), None
        features, targets = self._recall(len(rows))
        for part in torch.split(torch.arange(len(targets)), 10):
            self._rules.begin([z[part] for z in features], targets[part])

    def _leave(self, rules: Rules, rows: Tensor, *, is_whole: bool) -> bool:
        """Keeps what rows have left for rows of its range; returns whether most of the latest are of a former's."""
        left = Former(self._representations, rules, self._units)
        left.is_whole = is_whole
        for former in self._formers:
            former.lead = 0.0  # it was that of another present
        back = self._formers.exchange(left, rows[-self._schedule.n_leaving :])
        self._fit, self._asked = object(), None
        if back is None:
            self._representations = Representations(self._n_features)
            return False
        self._representations, self._rules, self._units = back.representations, back.rules, back.units
        self._rules.events = rules.events
        self._schedule.come_back()
        return True

    def _new_rules(self, representations: Representations, width: int) -> Rules:
        return Rules(
            self._family,
            _KEEPS,
            sizes=representations.sizes,
            width=width,
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
        witnesses = self.rows.x[-2 * _WITNESSES :: 2]
        log_density = bank.log_density(Samples(witnesses.to(self._device)), exact=False).cpu()
        latest = log_gate(log_density, counts).exp().mean(dim=0)
        self._current = currency(latest, counts / counts.sum())

    # State

    def state_dict(self) -> State:
        """Returns everything."""
        is_fitted = self._rules is not None
        return {
            "rows": self.rows.state_dict(),
            "generator": self._generator.get_state(),
            "representations": self._representations.state_dict() if is_fitted else None,
            "rules": None if self._rules is None else self._rules.state_dict(),
            "n_seen": self.n_seen,
            "schedule": self._schedule.state_dict(),
            "width": self._width,
            "asked_at": self._asked_at,
            "current": self._current.clone(),
            "formers": [former.state_dict() for former in self._formers],
            "shift": torch.from_numpy(self._units.shift.copy()),
            "scale": torch.from_numpy(self._units.scale.copy()),
            "counts": torch.from_numpy(self._labels.counts.copy()),
        }

    def load_state_dict(self, state: State) -> None:
        """Restores it to the bit; a state of another form changes nothing."""
        n_bytes, width = len(self._generator.get_state()), 0 if self.for_classes else self._width
        check_present(state, n_outputs=width, n_random_bytes=n_bytes)
        rows, width = RecentRows(self.rows.capacity), state["width"]
        rows.load_state_dict(state["rows"], n_columns=self._n_columns, n_classes=width * self.for_classes)
        schedule = Schedule()
        schedule.load_state_dict(state["schedule"])
        representations, rules = Representations(self._n_features), None
        if state["rules"] is not None:
            representations, rules = self._restored(state, width)
        formers = Formers()
        for saved in state["formers"]:
            formers.append(Former(*self._restored(saved, width), Units.of_state(saved)))
            formers[-1].lead, formers[-1].is_whole = saved["lead"], saved["is_whole"]
        self._generator.set_state(state["generator"].cpu())
        self.rows, self._representations, self._rules = rows, representations, rules
        self._units, self._formers = Units.of_state(state), formers
        self.n_seen, self._schedule = state["n_seen"], schedule
        self._width, self._asked_at = state["width"], state["asked_at"]
        self._labels = Labels(state["counts"].cpu().numpy().copy())
        self._current, self._fit, self._asked = state["current"].cpu().clone(), object(), None

    def _restored(self, state: State, width: int) -> tuple[Representations, Rules]:
        representations = Representations(self._n_features)
        representations.load_state_dict(state["representations"])
        if representations.sizes[0] != self._n_columns:
            raise StateError(f"representations must be of {self._n_columns} columns")
        rules = self._new_rules(representations, width)
        rules.load_state_dict(state["rules"])
        return representations, rules
