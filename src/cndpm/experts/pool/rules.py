"""Rules that take turns: which one holds, when another has begun, and which of the former has come back.

Models that forget fast challenge the rule that holds. While they lead by little it waits; once they lead by `evidence`
nats the samples since they began to lead found another rule. A sticky filter over all rules finds one that returns.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from cndpm.experts.pool.mix import softmax
from cndpm.experts.pool.moments import Labels
from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, State, StateError, expect, number, tensor, whole

KNOWN = 20
"""Samples of a label before it is evidence for or against a model: until then it is news to all of them."""

_ALLOWANCE = 0.05
"""Nats a sample that challengers must lead by: as much as calibration alone may give them."""

_WAIT = 2.0
"""Nats of lead at which the rule that holds learns no more: the samples may be another's."""

_SWITCH = 0.005
"""Probability that another rule holds from one sample to the next."""

_FLOOR = 6.0
"""Nats below the best rule at which a sample's evidence is cut off."""

_FEWEST = 20
"""Samples that found a rule."""

_N_TURNS, _WITHIN = 4, 100
"""Returns, and the samples within which so many show that rules tell parts of the rows and not times."""

_N_EVENTS = 1000
"""Events that are kept."""


class Rules(Keeps):
    """Says which of K rules holds.

    Args:
        evidence: Nats by which challengers must lead to found a rule.
        most: Rules kept at most; the oldest makes way.
        n_labels: C so far.
        events: What it notes events in.

    Attributes:
        filter: Log weights of the rules, (K,).
        seen: Samples of every label that each has learned, those of the rule that it began from included, (K, C).
        held: Samples that each has learned itself, (K,).
        lead: Nats by which the challengers lead.
        n_since: Samples since they began to.
        holds: The rule that learns.
        events: The latest (sample, "founded" or "returned", rule).

    Example:
        >>> rules = Rules(evidence=20.0, most=8, n_labels=2, events=[])
        >>> rules.challenge(gain=3.0, n=10), rules.is_waiting
        (False, True)
        >>> rules.challenge(gain=30.0, n=10)  # another rule has begun
        True
    """

    kept: ClassVar = {
        "filter": tensor("rules"),
        "seen": tensor("rules", "labels"),
        "held": tensor("rules"),
        "lead": number(0),
        "n_since": whole(),
        "holds": whole(),
    }

    def __init__(self, *, evidence: float, most: int, n_labels: int, events: list[tuple[int, str, int]]) -> None:
        self._evidence, self._most, self.events = evidence, most, events
        self.filter, self.seen, self.held = np.zeros(1), np.zeros((1, n_labels)), np.zeros(1)
        self.lead, self.n_since, self.holds = 0.0, 0, 0

    def __len__(self) -> int:
        return len(self.filter)

    @property
    def is_waiting(self) -> bool:
        """Whether the rule that holds may be another's by now, and learns labels that are new to it alone."""
        return self.lead > _WAIT

    @property
    def are_parts(self) -> bool:
        """Whether rules have just taken turns so fast that they are parts of one that no model could tell yet."""
        latest = self.events[-_N_TURNS:]
        are_returns = len(latest) == _N_TURNS and all(kind == "returned" for _, kind, _ in latest)
        return len(self) > 1 and are_returns and latest[-1][0] - latest[0][0] < _WITHIN

    @property
    def weights(self) -> Floats:
        """The probability that each rule holds, (K,)."""
        return softmax(self.filter)

    def admit(self, n_labels: int) -> None:
        """Makes room for labels below `n_labels`."""
        self.seen = np.pad(self.seen, ((0, 0), (0, max(0, n_labels - self.seen.shape[1]))))

    def relabel(self, places: Labels) -> None:
        """Gives labels other numbers: label y becomes `places[y]`, (C,), and there is room for all of them."""
        self.admit(len(places))
        self.seen = self.seen[:, np.argsort(places)]

    def knows(self, y: Labels) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Returns which of labels (B,) the rule that holds has met often enough."""
        is_known: np.ndarray[tuple[int], np.dtype[np.bool_]] = self.seen[self.holds][y] >= KNOWN
        return is_known

    def count(self, y: Labels) -> None:
        """Counts labels (B,) that the rule that holds has learned."""
        np.add.at(self.seen[self.holds], y, 1)
        self.held[self.holds] += len(y)

    def follow(self, log_scores: Floats, sample: int) -> None:
        """Moves the filter by what every rule gave the labels of B samples, (K, B); the latest has a number."""
        if len(self.filter) == 1:
            return
        weights = self.weights
        for likely in np.exp(np.maximum(log_scores - log_scores.max(axis=0), -_FLOOR)).T:
            weights = ((1 - _SWITCH) * weights + _SWITCH / len(self)) * likely
            weights /= np.add.reduce(weights)
        self.filter = np.log(weights)
        best = int(self.filter.argmax())
        if best != self.holds:
            self.holds = best
            self._note(sample, "returned")

    def challenge(self, gain: float, n: int) -> bool:
        """Adds the nats that challengers gained over the rules with n samples; returns whether another has begun."""
        self.lead = max(0.0, self.lead + gain - _ALLOWANCE * n)
        self.n_since = self.n_since + n if self.lead > _WAIT else 0
        return self.lead > self._evidence and self.n_since >= _FEWEST

    def found(self, sample: int) -> int | None:
        """Begins a rule beside the others, which holds from now on; returns the one that makes way, if any."""
        self.seen = np.append(self.seen, self.seen[self.holds][None], axis=0)
        self.filter, self.held = np.append(self.filter, self.filter.max()), np.append(self.held, 0.0)
        self.holds, self.lead, self.n_since = len(self) - 1, 0.0, 0
        self._note(sample, "founded")
        return 0 if len(self) > self._most else None

    def drop(self, rule: int) -> None:
        """Gives up a rule that does not hold."""
        self.filter, self.held = np.delete(self.filter, rule), np.delete(self.held, rule)
        self.seen = np.delete(self.seen, rule, axis=0)
        self.holds -= rule < self.holds

    def _note(self, sample: int, kind: str) -> None:
        self.events.append((sample, kind, self.holds))
        del self.events[:-_N_EVENTS]

    def state_dict(self) -> State:
        return {**super().state_dict(), "events": [list(event) for event in self.events]}

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        found = expect(state, self.kept, **sizes)
        expect(state, {"holds": whole(0, found["rules"] - 1)})
        events: Any = state.get("events")
        if not isinstance(events, list) or not all(map(_is_event, events)):
            raise StateError("'events' must be lists of a sample, 'founded' or 'returned', and a rule")
        super().load_state_dict(state, **sizes)
        self.events[:] = [tuple(event) for event in events]
        return found


def _is_event(value: Any) -> bool:
    is_triple = isinstance(value, list | tuple) and len(value) == 3
    return is_triple and type(value[0]) is type(value[2]) is int and value[1] in ("founded", "returned")
