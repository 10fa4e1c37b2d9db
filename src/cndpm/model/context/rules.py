"""Rules that take turns: models of the latest samples compete with models of rules that were met before.

Over R representations of x there are *recent* models, which forget at several rates, and for every *rule* one that
forgets nothing. For classes the mixture of experts counts as a recent model too; evidence weighs them all.

The fast ones of the recent models challenge the rule in force. While they lead by little the rule waits; once they lead
by `evidence` nats the samples since they began to lead found a rule, or renew one that never served long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.pool import Family
from cndpm.experts.pool.members import Members
from cndpm.mixture.time import Challenge, Floats, challenge
from cndpm.model.context.weights import Answer, Weights
from cndpm.state import State, StateError, expect, number, part, tensor, whole

__all__ = ["Rules"]

_FAST = 0.98
"""Models that keep no more of a sample after the next one may challenge a rule."""

_ALLOWANCE = 0.05
"""Nats a sample by which a challenger must lead: what calibration alone may give it."""

_WAIT = 2.0
"""Nats of lead at which the rule in force no longer learns: the samples may be another's."""

_NEGLIGIBLE = 0.01
"""Part of an answer below which a recent model hardly matters, and is renewed less often."""

_NOTED = 50
"""Samples between two notes of what held, so that one of them is older than what made a range be left."""

_EVENTS = ("founded", "renewed", "returned")

_N_EVENTS = 1000
"""Events that are kept, so that a stream without end does not fill the memory."""

Features = list[Tensor]
Recall = Callable[[int], tuple[Features, Tensor]]
"""Returns features and targets of the latest n samples."""


class Rules:
    """Recent models and rules over R representations.

    Args:
        family: What is predicted.
        keeps: Rates of forgetting of recent models, for every representation.
        sizes: Features of every representation.
        width: Number of classes so far, or of targets.
        evidence: Nats by which recent models must lead to found a rule.
        n_rules: Rules kept at most.
        served: Samples that a rule must have learned not to be renewed in place.

    Attributes:
        in_force: The rule that learns.
        events: The latest 1,000 happenings: (sample, "founded" | "renewed" | "returned", rule).
        n_seen: Samples of the stream so far, for the events.

    Example:
        >>> import torch
        >>> from cndpm.experts.pool import ClassFamily
        >>> sizes = {"sizes": [1], "width": 2, "evidence": 20.0, "n_rules": 8, "served": 300}
        >>> rules = Rules(ClassFamily(), [(0.98, 0.99)], **sizes)
        >>> z, y = torch.tensor([[-1.0], [1.0]] * 10).double(), torch.tensor([0, 1] * 10)
        >>> rules.begin([z], y)
        >>> rules.answer([z[:2]], np.zeros((2, 2))).mixed.argmax(axis=1)
        array([0, 1])
    """

    def __init__(
        self,
        family: Family,
        keeps: list[tuple[float, ...]],
        *,
        sizes: list[int],
        width: int,
        evidence: float,
        n_rules: int,
        served: int,
    ) -> None:
        self._evidence, self._most, self._min_served = evidence, n_rules, served
        self._n_recent = [len(own) for own in keeps]
        self._members: list[Members] = [family.make(d, width, (*own, 1.0)) for d, own in zip(sizes, keeps, strict=True)]
        self._weights = Weights(family, n_recent=sum(self._n_recent), n_representations=len(sizes))
        self._is_fast = np.zeros(self._weights.n_recent, dtype=bool)  # nor are experts and other labels
        self._is_fast[: sum(self._n_recent)] = np.concatenate(keeps) <= _FAST
        self._served, self.in_force, self._challenge = [0], 0, Challenge()
        self._noted = [self._note_now()] * 2
        self.n_seen = self._noted_at = 0
        self.events: list[tuple[int, str, int]] = []

    @property
    def n_rules(self) -> int:
        """K."""
        return len(self._served)

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all models."""
        return sum(members.n_numbers_kept for members in self._members)

    @property
    def weights(self) -> Floats:
        """The filter's probability of the recent models and of every rule, (1 + K,)."""
        return self._weights.of_hypotheses

    def admit(self, n_classes: int) -> None:
        """Makes room for class indices below `n_classes`."""
        for members in self._members:
            members.admit(n_classes)

    def answer(self, features: Features, experts: Floats) -> Answer:
        """Answers for now.

        Args:
            features: Of B samples, (B, d) for every representation, double.
            experts: What the mixture of experts answers, (B, ...).
        """
        raw = [members.answers(z) for members, z in zip(self._members, features, strict=True)]
        return self._weights.answer(raw, self._n_recent, experts, in_force=self.in_force)

    def learn(self, features: Features, y: Tensor, answer: Answer, recall: Recall) -> None:
        """Learns a batch that was answered before.

        Args:
            features: (B, d) for every representation.
            y: Class indices (B,) or targets (B, o), double.
            answer: To this very batch, as things were.
            recall: Returns the latest n samples, these included.
        """
        if self.n_seen - self._noted_at >= _NOTED:
            self._noted, self._noted_at = [self._noted[1], self._note_now()], self.n_seen
        gains = self._weights.weigh(y.numpy(), answer, self._is_fast, in_force=self.in_force)
        self._return_if_due()
        before, self._challenge = self._challenge, challenge(self._challenge, gains[self.in_force] - _ALLOWANCE)
        if before.nats < _WAIT <= self._challenge.nats:
            for members in self._members:
                members.hurry()
        self._teach(features, y, recent=True, rule=self._challenge.nats < _WAIT, answered=answer.raw)
        if self._challenge.nats > self._evidence:
            self._found(recall)

    def begin(self, features: Features, y: Tensor) -> None:
        """Learns samples that came before these rules were made.

        Args:
            features: (B, d) for every representation.
            y: Class indices (B,) or targets (B, o), double.
        """
        self._teach(features, y, recent=True, rule=True)

    def retire(self) -> None:
        """Goes back to the rule in force before the latest samples, which were of another range."""
        self.in_force, of_representations = self._noted[0]
        self._weights.settle_on(self.in_force, of_representations)
        self._challenge = Challenge()

    def _note_now(self) -> tuple[int, Floats]:
        return self.in_force, self._weights.of_representations.copy()

    def inherit(self, other: Rules) -> None:
        """Takes over what was learned about representations, rates and stickiness, but no rule."""
        self._weights.inherit(other._weights)
        self.events, self.n_seen = other.events, other.n_seen

    def _teach(self, features: Features, y: Tensor, *, recent: bool, rule: bool, answered: Any = None) -> None:
        """Has the recent models, the rule in force or both learn samples."""
        first, negligible = 0, self._weights.of_members < _NEGLIGIBLE
        for i, (members, z) in enumerate(zip(self._members, features, strict=True)):
            n = self._n_recent[i]
            learning = [*range(n if recent else 0), *([n + self.in_force] if rule else [])]
            patient = () if self._challenge.nats >= _WAIT else np.flatnonzero(negligible[first : first + n]).tolist()
            members.learn(z, y, learning, answered=None if answered is None else answered[i], patient=patient)
            first += n
        if rule:
            self._served[self.in_force] += len(y)

    def _return_if_due(self) -> None:
        """Puts another rule in force once it is more probable than not."""
        weights = self.weights[1:]
        best = int(weights.argmax())
        if best != self.in_force and weights[best] > 0.5:
            self.in_force, self._challenge = best, Challenge()
            self._weights.forget_labels()
            self._note("returned", best)

    def _found(self, recall: Recall) -> None:
        """Makes a rule of the samples since its challengers began to lead, or of that in force with other labels."""
        n, self._challenge, before = max(20, self._challenge.since), Challenge(), self.in_force
        labels = self._weights.relabelling(self._is_fast)
        is_young = self._served[self.in_force] < self._min_served
        if not is_young and len(self._served) < self._most:
            self._served.append(0)
            self._weights.add_rule()
            for members in self._members:
                members.append()
            self.in_force = len(self._served) - 1
        else:
            if not is_young:  # there is no room: the rule that served least makes way
                served = [n if k != self.in_force else np.inf for k, n in enumerate(self._served)]
                self.in_force = int(np.argmin(served))
            self._served[self.in_force] = 0
        for members, n_recent in zip(self._members, self._n_recent, strict=True):
            members.begin(n_recent + self.in_force, n_recent + before, labels)
        self._weights.forget_labels()
        self._note("renewed" if is_young else "founded", self.in_force)
        self._teach(*recall(n), recent=False, rule=True)

    def _note(self, kind: str, rule: int) -> None:
        self.events.append((self.n_seen, kind, rule))
        del self.events[:-_N_EVENTS]

    def state_dict(self) -> State:
        """Returns everything."""
        return {
            "members": [members.state_dict() for members in self._members],
            "weights": self._weights.state_dict(),
            "served": list(self._served),
            "in_force": self.in_force,
            "challenge": list(self._challenge),
            "noted_at": self._noted_at,
            "noted_rules": [rule for rule, _ in self._noted],
            "noted": torch.tensor(np.stack([evidence for _, evidence in self._noted])),
            "n_seen": self.n_seen,
            "events": [list(event) for event in self.events],
        }

    def load_state_dict(self, state: State) -> None:
        """Restores it to the bit; a state of another form may be taken in part before it is refused."""
        served: Any = state.get("served")
        of_members: Any = state.get("members")
        if not _are_whole(served) or not 1 <= len(served) <= self._most:
            raise StateError(f"'served' must tell of 1 to {self._most} rules; got {str(served)[:80]}")
        expect(state, {"in_force": whole(0, len(served) - 1), "n_seen": whole(), "weights": part()})
        if not isinstance(of_members, list) or len(of_members) != len(self._members):
            raise StateError(f"'members' must be a list of {len(self._members)} representations")
        for members, saved in zip(self._members, of_members, strict=True):
            for _ in range(len(served) - self.n_rules):
                members.append()
            members.load_state_dict(saved)
        self._weights.load_state_dict(state["weights"], n_rules=len(served))
        self._load_notes(state, len(served))
        self._served, self.in_force = list(served), state["in_force"]
        self._challenge, self.n_seen = _challenge_of(state.get("challenge")), state["n_seen"]
        self.events = _events_of(state.get("events"))

    def _load_notes(self, state: State, n_rules: int) -> None:
        evidence = self._weights.of_representations
        expect(state, {"noted_at": whole(), "noted": tensor(2, *evidence.shape)})
        rules: Any = state.get("noted_rules")
        if not _are_whole(rules) or len(rules) != 2 or max(rules) >= n_rules:
            raise StateError(f"'noted_rules' must be two of {n_rules} rules; got {str(rules)[:80]}")
        noted = state["noted"].cpu().numpy()
        self._noted, self._noted_at = list(zip(rules, noted.copy(), strict=True)), state["noted_at"]


def _are_whole(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _challenge_of(saved: Any) -> Challenge:
    if not isinstance(saved, list) or len(saved) != 2:
        raise StateError(f"'challenge' must be nats and samples; got {str(saved)[:80]}")
    expect(dict(zip(("nats", "since"), saved, strict=True)), {"nats": number(0), "since": whole()})
    return Challenge(*saved)


def _events_of(saved: Any) -> list[tuple[int, str, int]]:
    """Returns events as they were, if they are some."""
    events: list[Any] = [tuple(event) for event in saved] if isinstance(saved, list) else [()]
    for event in events:
        if len(event) != 3 or event[1] not in _EVENTS or not _are_whole([event[0], event[2]]):
            raise StateError(f"'events' must be lists of a sample, one of {', '.join(_EVENTS)}, a rule; got {event!r}")
    return events
