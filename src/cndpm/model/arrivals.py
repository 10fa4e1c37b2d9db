"""Receives batches on their way to the experts: wild rows stay outside, pools learn the rest at once.

Where pools answer, the experts say where rows lie and found places for new ones, which no single row is in a hurry
for: rows wait for each other, and a fifth of a memory of them goes to the watch and to the experts together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.chunks import Samples
from cndpm.experts.features.ranges import N_FIRST, N_LATEST
from cndpm.learner import Footprint
from cndpm.model.door import Door
from cndpm.model.memory import SampleBatch
from cndpm.model.places import Places
from cndpm.model.watch import Watch
from cndpm.state import State, StateError, expect, tensor

__all__ = ["Arrivals"]

_TOGETHER = 0.2
"""Part of the memory's room that goes to the experts together once pools answer: row by row they would cost as much as
the pools, and a memory is filled by five of them at least."""


class Arrivals:
    """Receives batches before the experts do.

    Args:
        bank: The experts.
        door: Sets wild rows aside; None lets everything in.
        watch: Keeps rows to say how new others are; None where none are kept.
        places: Pools that answer for rows with targets; None where the experts answer themselves.
        memory_size: Samples that make an expert.

    Attributes:
        n_waiting: Rows that the experts have not learned yet.

    Example:
        >>> from cndpm.model.cndpm import CNDPM
        >>> learner = CNDPM(CNDPM.Settings(), input_shape=(2,))
        >>> learner.learn(torch.randn(300, 2), torch.arange(300) % 2)
        >>> learner.learn(torch.tensor([[0.0, 1e10], [0.5, 0.5]]), torch.tensor([0, 1]))
        >>> learner.arrivals.describe()["n_set_aside"]
        1
    """

    def __init__(
        self, bank: Bank, *, door: Door | None, watch: Watch | None, places: Places | None, memory_size: int
    ) -> None:
        self._bank, self._together = bank, _TOGETHER * memory_size
        self.door, self.watch, self.places = door, watch, places
        self._waiting: list[SampleBatch] = []
        self.n_waiting, self._latest = 0, torch.zeros(0, 0)

    def open(self, x: Tensor) -> tuple[Tensor, Callable[[SampleBatch], list[SampleBatch]] | None]:
        """Looks at a block before it is cut into batches.

        Args:
            x: (n, *input_shape).

        Returns:
            The block with finite squares, and what every batch of it passes: a function that returns the batches that
            the experts learn now; or None where no batch need pass anything.
        """
        x = x if self.door is None else self.door.look(x)
        is_watched = self.door is not None and self.door.is_watching
        is_needed = is_watched or self.watch is not None or self.places is not None
        return x, self._receive if is_needed else None

    def _receive(self, batch: SampleBatch) -> list[SampleBatch]:
        admitted = self.door.admit(batch) if self.door is not None and self.door.is_watching else batch
        if admitted is None:
            return []
        places = self.places
        if places is None or admitted.y is None:
            before = self.release() if self._waiting else []
            if self.watch is not None:
                self.watch.see(admitted.samples.x)
            return [*before, admitted]
        places.learn(admitted.samples.x.cpu().double().numpy(), admitted.y.numpy())
        self._waiting.append(admitted)
        self.n_waiting += len(admitted.y)
        return [] if places.of_experts and self.n_waiting < self._together else self.release()

    def release(self) -> list[SampleBatch]:
        """Returns the rows that wait as one batch for the experts, if there are any."""
        if not self._waiting:
            return []
        together, self._waiting, self.n_waiting = _joined(self._waiting), [], 0
        x = together.samples.x.cpu()
        self._latest = torch.cat([self._latest.reshape(-1, x.shape[1]), x])[-N_LATEST:]
        if self.places is not None and self._bank.adapt(self._latest):
            self.places.begin(N_FIRST)
        if self.watch is not None:
            self.watch.see(x)
        return [together]

    def settle(self) -> None:
        """Takes account of all rows that have come."""
        if self.watch is not None:
            self.watch.settle()
        if self.places is not None:
            self.places.refresh()

    def describe(self) -> dict[str, Any]:
        """Returns ``n_rules`` where pools keep rules, ``n_set_aside`` where wild rows came."""
        shown = {} if self.places is None else {"n_rules": self.places.n_rules}
        if self.door is not None and self.door.n_set_aside:
            shown["n_set_aside"] = self.door.n_set_aside
        return shown

    def added_to(self, kept: Footprint) -> Footprint:
        """Returns a footprint with all that is kept here in it."""
        n_bytes = sum(batch.samples.x.nbytes for batch in self._waiting)
        kept = replace(
            kept, memory_samples=kept.memory_samples + self.n_waiting, memory_bytes=kept.memory_bytes + n_bytes
        )
        if self.door is not None:
            kept = replace(kept, n_numbers_kept=kept.n_numbers_kept + self.door.n_numbers_kept)
        if self.watch is not None:
            n_samples, n_bytes = kept.memory_samples + self.watch.n_rows, kept.memory_bytes + self.watch.n_bytes
            kept = replace(kept, memory_samples=n_samples, memory_bytes=n_bytes)
        for pool in () if self.places is None else self.places.pools:
            kept = replace(
                kept,
                n_numbers_kept=kept.n_numbers_kept + pool.n_numbers_kept,
                memory_samples=kept.memory_samples + len(pool.rows),
                memory_bytes=kept.memory_bytes + pool.rows.n_bytes,
            )
        return kept

    def state_dict(self) -> State:
        """Returns the state of every part, None for those that are missing, and the rows that wait."""
        parts = {"door": self.door, "watch": self.watch, "places": self.places}
        states = {name: None if part is None else part.state_dict() for name, part in parts.items()}
        waiting = [[batch.samples.x.clone(), batch.y.clone()] for batch in self._waiting if batch.y is not None]
        return {**states, "rows_waiting": waiting, "latest": self._latest.clone()}

    def load_state_dict(self, state: State, n_experts: int, check: Callable[[State], None]) -> None:
        """Restores it to the bit.

        Args:
            state: As :meth:`state_dict` returns it.
            n_experts: K.
            check: Raises StateError where `x` and `y` of samples are none of this learner.
        """
        waiting = state.get("rows_waiting")
        if not isinstance(waiting, list) or not all(isinstance(one, list) and len(one) == 2 for one in waiting):
            raise StateError("'rows_waiting' must be a list of samples with their targets")
        for x, y in waiting:
            check({"x": x, "y": y})
        expect(state, {"latest": tensor("n", "d", dtype=torch.float32)})
        if self.places is not None:
            self.places.load_state_dict(state["places"], n_experts)
        if self.door is not None:
            self.door.load_state_dict(state["door"])
        if self.watch is not None:
            self.watch.load_state_dict(state["watch"])
        self._waiting = [SampleBatch(Samples(x.clone()), y.cpu().clone()) for x, y in waiting]
        self.n_waiting, self._latest = sum(len(x) for x, _ in waiting), state["latest"].cpu().clone()


def _joined(batches: list[SampleBatch]) -> SampleBatch:
    """Returns batches with targets as one."""
    if len(batches) == 1:
        return batches[0]
    y = torch.cat([batch.y for batch in batches if batch.y is not None])
    return SampleBatch(Samples(torch.cat([batch.samples.x for batch in batches])), y)
