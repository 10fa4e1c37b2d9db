"""The log of a mixture: which experts were founded, returned, were merged or dropped, and at which sample.

Parts that change the experts report to one :class:`EventLog`, which is part of the learner's state. That an expert
*returned* follows from the responsibilities: others had learned nearly everything for a while, and it learns most of
what comes now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from cndpm.state import Keeps, State, StateError, integers, tensor, whole

__all__ = ["Event"]

Kind = Literal["founded", "returned", "merged", "dropped", "rule founded", "rule returned"]

_MEMORY = 20
"""Samples over which the share of an expert is averaged."""

_AWAY = 200
"""Samples during which an expert has learned next to nothing before it can return."""

_PRESENT, _ABSENT = 0.5, 0.05
"""The share above which an expert is there, and the one below which it is not."""


_KEPT = 1000
"""Events that are kept: on a stream without end experts return again and again, and the log would grow with it."""


class Event(NamedTuple):
    """Something that happened to an expert.

    Attributes:
        sample: Number of samples that had been learned by then, the batch in which it happened included.
        kind: "founded", "returned", "merged" or "dropped" of an expert; "rule founded" or "rule returned" of what holds
            at its place.
        expert: Its number at that moment. Experts behind one that is merged or dropped move up by one afterwards.
        into: The expert that it was merged into, numbered as before the merge; None for other kinds.
    """

    sample: int
    kind: Kind
    expert: int
    into: int | None = None


class EventLog(Keeps):
    """Keeps the latest events in the order in which they happened.

    Attributes:
        n_samples: Samples learned so far; the learner counts them.
        learned: Batches that known experts learned and that were not followed yet, one after another: the number of
            samples by the end of the batch, and the samples that each expert learned of it, (n_experts,).
        events: The latest 1,000 events.
        on_removal: Is called with the number of an expert that goes.
    """

    kept: ClassVar = {"n_samples": whole(), "share": tensor("n_experts"), "absent": integers("n_experts", low=0)}

    def __init__(self) -> None:
        self.n_samples = 0
        self.learned: list[tuple[int, NDArray[np.float64]]] = []
        self.events: list[Event] = []
        self.on_removal: Callable[[int], None] | None = None
        self.share = np.zeros(0)
        self._absent = np.zeros(0, dtype=np.int64)

    def merge(self, expert: int, into: int) -> None:
        """Reports that an expert was merged into another, both numbered as before."""
        self._add(Event(self.n_samples, "merged", expert, into))
        self._forget(expert)

    def rule(self, kind: str, expert: int) -> None:
        """Reports what happened to a rule at the place of which `expert` is the first."""
        self._add(Event(self.n_samples, cast(Kind, f"rule {kind}"), expert))

    def extend(self, other: EventLog) -> None:
        """Appends the experts of another log, as if they had been founded now; its samples count as learned."""
        self.n_samples += other.n_samples
        self.follow(len(self.share) + len(other.share))

    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        """Reports that every group of experts is one from now on; each is ascending, and together they are all."""
        for k, into in sorted(((k, group[0]) for group in groups for k in group[1:]), reverse=True):
            self.merge(k, into)

    def drop(self, expert: int) -> None:
        """Reports that an expert went, and with it what it had learned."""
        self._add(Event(self.n_samples, "dropped", expert))
        self._forget(expert)

    def follow(self, n_experts: int) -> None:
        """Looks for new experts, and for those that returned; batches of a block need not wait for it."""
        for sample, amounts in self.learned:
            self._follow(sample, amounts[: len(self.share)])
        self.learned.clear()
        for expert in range(len(self.share), n_experts):
            self._add(Event(self.n_samples, "founded", expert))
            self.share, self._absent = np.append(self.share, 1.0), np.append(self._absent, 0)

    def _follow(self, sample: int, amounts: NDArray[np.float64]) -> None:
        n = float(amounts.sum())
        kept = (1 - 1 / _MEMORY) ** n
        self.share = kept * self.share + (1 - kept) * amounts / max(n, 1e-9)
        here = self.share >= _PRESENT
        for k in np.nonzero(here & (self._absent >= _AWAY))[0].tolist():
            self._add(Event(sample, "returned", k))
        # Samples since the expert was last there; none are counted before its share has fallen away.
        is_away = (self.share < _ABSENT) | (self._absent > 0)
        self._absent = np.where(here | ~is_away, 0, self._absent + round(n))

    def _add(self, event: Event) -> None:
        self.events.append(event)
        del self.events[:-_KEPT]

    def _forget(self, expert: int) -> None:
        if self.on_removal is not None:
            self.on_removal(expert)
        self.share, self._absent = np.delete(self.share, expert), np.delete(self._absent, expert)

    def state_dict(self) -> State:
        return {**super().state_dict(), "events": [list(event) for event in self.events]}

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        self.learned, self.events = [], [_event(values) for values in state["events"]]
        return super().load_state_dict(state, **sizes)

    def _admit(self, state: State) -> None:
        if (state["share"] < 0).any():
            raise StateError("'share' must hold numbers from 0 on")


def _event(values: Sequence[Any]) -> Event:
    sample, kind, expert, into = values
    return Event(int(sample), cast(Kind, kind), int(expert), None if into is None else int(into))
