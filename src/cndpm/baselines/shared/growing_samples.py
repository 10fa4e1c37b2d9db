"""Samples without a limit, for learners that are no continual learners and say so."""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.learner import Footprint
from cndpm.state import State


class GrowingSamples:
    """Every batch it was given, as rows of named tensors."""

    def __init__(self) -> None:
        self._batches: list[dict[str, Tensor]] = []

    def __len__(self) -> int:
        return sum(len(next(iter(batch.values()))) for batch in self._batches)

    def add(self, **rows: Tensor) -> None:
        """Keeps copies of a batch."""
        self._batches.append({name: value.clone() for name, value in rows.items()})

    def rows(self) -> dict[str, Tensor]:
        """Returns copies of all samples in the order they came."""
        names = self._batches[0] if self._batches else {}
        return {name: torch.cat([batch[name] for batch in self._batches]) for name in names}

    def clear(self) -> None:
        """Forgets all samples."""
        self._batches = []

    def footprint(self) -> Footprint:
        """Counts the samples held now and their bytes."""
        tensors = [value for batch in self._batches for value in batch.values()]
        return Footprint(
            0, 0, memory_samples=len(self), memory_bytes=sum(t.numel() * t.element_size() for t in tensors)
        )

    def state_dict(self) -> State:
        return {"rows": self.rows()}

    def load_state_dict(self, state: State) -> None:
        self.clear()
        if state["rows"]:
            self.add(**state["rows"])
