"""Receives batches on their way to the experts: wild rows stay outside, the watch and the pools see the rest.

None of it decides what experts learn, but for the rows that are set aside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.features.ranges import N_FIRST, N_LATEST
from cndpm.learner import Footprint
from cndpm.model.door import Door
from cndpm.model.memory import SampleBatch
from cndpm.model.places import Places
from cndpm.model.watch import Watch
from cndpm.state import State, expect, tensor, whole

__all__ = ["Arrivals"]

_LOOK = 10
"""Rows after which it is looked anew whether they have left the ranges that are known."""


class Arrivals:
    """Receives batches before the experts do.

    Args:
        bank: The experts.
        door: Sets wild rows aside; None lets everything in.
        watch: Keeps rows to say how new others are; None where none are kept.
        places: Pools that answer for rows with targets; None where the experts answer themselves.

    Example:
        >>> from cndpm.model.cndpm import CNDPM
        >>> learner = CNDPM(CNDPM.Settings(), input_shape=(2,))
        >>> learner.learn(torch.randn(300, 2), torch.arange(300) % 2)
        >>> learner.learn(torch.tensor([[0.0, 1e10], [0.5, 0.5]]), torch.tensor([0, 1]))
        >>> learner.arrivals.describe()["n_set_aside"]
        1
    """

    def __init__(self, bank: Bank, *, door: Door | None, watch: Watch | None, places: Places | None) -> None:
        self._bank = bank
        self.door, self.watch, self.places = door, watch, places
        self._latest, self._n_since = torch.zeros(0, 0), 0

    def open(self, x: Tensor) -> tuple[Tensor, Callable[[SampleBatch], SampleBatch | None] | None]:
        """Looks at a block before it is cut into batches.

        Args:
            x: (n, *input_shape).

        Returns:
            The block with finite squares, and what every batch of it passes: a function of the batch that returns what
            is left for the experts, None where nothing is; or None where no batch need pass anything.
        """
        x = x if self.door is None else self.door.look(x)
        is_watched = self.door is not None and self.door.is_watching
        is_needed = is_watched or self.watch is not None or self.places is not None
        return x, self._receive if is_needed else None

    def _receive(self, batch: SampleBatch) -> SampleBatch | None:
        admitted = self.door.admit(batch) if self.door is not None and self.door.is_watching else batch
        if admitted is None:
            return None
        if self.watch is not None:
            self.watch.see(admitted.samples.x)
        if self.places is not None and admitted.y is not None:
            x = admitted.samples.x.cpu()
            self._follow_units(x, self.places)
            self.places.learn(x.double().numpy(), admitted.y.numpy())
        return admitted

    def _follow_units(self, x: Tensor, places: Places) -> None:
        """Begins a place where the latest rows have left the ranges that the experts know."""
        self._latest = torch.cat([self._latest.reshape(-1, x.shape[1]), x])[-N_LATEST:]
        self._n_since += len(x)
        if self._n_since >= _LOOK:
            self._n_since = 0
            if self._bank.adapt(self._latest):
                places.begin(N_FIRST)

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
        """Returns the state of every part, None for those that are missing."""
        parts = {"door": self.door, "watch": self.watch, "places": self.places}
        states = {name: None if part is None else part.state_dict() for name, part in parts.items()}
        return {**states, "latest": self._latest.clone(), "n_since": self._n_since}

    def load_state_dict(self, state: State, n_experts: int) -> None:
        """Restores it to the bit.

        Args:
            state: As :meth:`state_dict` returns it.
            n_experts: K.
        """
        if self.places is not None:
            self.places.load_state_dict(state["places"], n_experts)
            expect(state, {"latest": tensor("n", "d", dtype=torch.float32), "n_since": whole(0, _LOOK)})
        if self.door is not None:
            self.door.load_state_dict(state["door"])
        if self.watch is not None:
            self.watch.load_state_dict(state["watch"])
        self._latest, self._n_since = state["latest"].cpu().clone(), int(state["n_since"])
