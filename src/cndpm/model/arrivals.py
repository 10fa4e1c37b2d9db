"""Receives batches on their way to the experts: wild rows stay outside, the watch and the present see the rest.

None of it decides what experts learn, but for the rows that are set aside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.features.ranges import N_FIRST
from cndpm.experts.gaussian import RangedGaussianBank
from cndpm.learner import Footprint
from cndpm.model.context import Present
from cndpm.model.door import Door
from cndpm.model.memory import SampleBatch
from cndpm.model.watch import Watch
from cndpm.state import State

__all__ = ["Arrivals"]

_LOOK = 10
"""Rows after which it is looked anew whether they have left the ranges that are known."""


class Arrivals:
    """Receives batches before the experts do.

    Args:
        bank: The experts.
        door: Sets wild rows aside; None lets everything in.
        watch: Keeps rows to say how new others are; None where none are kept.
        present: Learns what is true now; None where there is one representation.
        ever: Returns what the experts answer to a batch for any time.

    Example:
        >>> from cndpm.model.cndpm import CNDPM
        >>> learner = CNDPM(CNDPM.Settings(), input_shape=(2,))
        >>> learner.learn(torch.randn(300, 2), torch.arange(300) % 2)
        >>> learner.learn(torch.tensor([[0.0, 1e10], [0.5, 0.5]]), torch.tensor([0, 1]))
        >>> learner.arrivals.describe()["n_set_aside"]
        1
    """

    def __init__(
        self,
        bank: Bank,
        *,
        door: Door | None,
        watch: Watch | None,
        present: Present | None,
        ever: Callable[[SampleBatch], Tensor],
    ) -> None:
        self._bank, self._ever = bank, ever
        self.door, self.watch, self.present = door, watch, present

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
        is_needed = is_watched or self.watch is not None or self.present is not None
        return x, self._receive if is_needed else None

    def _receive(self, batch: SampleBatch) -> SampleBatch | None:
        admitted = self.door.admit(batch) if self.door is not None and self.door.is_watching else batch
        if admitted is None:
            return None
        if self.watch is not None:
            self.watch.see(admitted.samples.x)
        if self.present is not None and admitted.y is not None:
            self.present.watch(self._bank)
            ever = self._ever(admitted) if self.present.n_rules else torch.zeros(0)
            n_looks = self.present.n_seen // _LOOK
            self.present.learn(admitted.samples, admitted.y, ever)
            is_due = self.present.n_seen // _LOOK > n_looks
            if is_due and isinstance(self._bank, RangedGaussianBank) and self._bank.adapt(self.present.rows.x):
                self.present.leave(N_FIRST, is_whole=True)
        return admitted

    def settle(self) -> None:
        """Takes account of all rows that have come."""
        if self.watch is not None:
            self.watch.settle()

    def describe(self) -> dict[str, Any]:
        """Returns ``n_rules`` where rules are kept beside the experts, ``n_set_aside`` where wild rows came."""
        shown = {} if self.present is None else {"n_rules": self.present.n_rules}
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
        return kept if self.present is None else self.present.added_to(kept)

    def state_dict(self) -> State:
        """Returns the state of every part, None for those that are missing."""
        parts = {"door": self.door, "watch": self.watch, "present": self.present}
        return {name: None if part is None else part.state_dict() for name, part in parts.items()}

    def load_state_dict(self, state: State) -> None:
        """Restores it to the bit; earlier versions kept neither a door nor a watch."""
        if self.present is not None:
            self.present.load_state_dict(state["present"])
        if self.door is not None:
            self.door.load_state_dict(state.get("door"))
        if self.watch is not None:
            self.watch.load_state_dict(state.get("watch"))
