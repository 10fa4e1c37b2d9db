"""The short-term memory: samples that no expert explains, until there are enough to found a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.state import State, StateError, expect, integers, nothing, tensor

_PART = 16
"""Samples kept together. What was computed of a full part stays, so that a memory that grows is not computed anew; and
as parts are filled in order, a memory that was loaded is computed in the same pieces."""


class SampleBatch(NamedTuple):
    """Samples (n, ...) with their targets (n, ...), on the host; None where there are none."""

    samples: Samples
    y: Tensor | None

    def select(self, rows: Tensor) -> SampleBatch:
        """Returns some of the rows with those of their features that are known."""
        return SampleBatch(self.samples.select(rows), None if self.y is None else self.y[rows])

    def rows(self, rows: Tensor) -> SampleBatch:
        """Returns some of the rows, by mask or index on the host, as samples of their own."""
        x = self.samples.x
        return SampleBatch(Samples(x[rows.to(x.device)]), None if self.y is None else self.y[rows])


def check_kept(
    state: State, input_shape: tuple[int, ...], facts: tuple[str, int, int], capacity: int | None = None
) -> None:
    """Checks samples and targets of a state; StateError where they are something else."""
    target, n_outputs, n_classes = facts
    forms = {
        "classes": integers("n", low=0, below=max(1, n_classes)),
        "values": tensor("n", n_outputs, dtype=torch.float32),
        "none": nothing(),
    }
    if state["x"] is None:
        expect(state, {"y": nothing()})
        return
    x = tensor("n", *input_shape, dtype=torch.float32)
    n = expect(state, {"x": x, "y": forms[target]})["n"]
    if capacity is not None and n > capacity:
        raise StateError(f"at most {capacity} samples were expected in the memory; got {n}")


class ShortTermMemory:
    """Holds at most `capacity` samples (M in the paper) in the order of their arrival; their targets on the host."""

    def __init__(self, capacity: int, device: torch.device | str = "cpu") -> None:
        self.capacity = capacity
        self._device = torch.device(device)
        self._parts: list[Samples] = []
        self._y: Tensor | None = None
        self.size = 0
        self._batch: SampleBatch | None = None

    def __len__(self) -> int:
        return self.size

    @property
    def is_full(self) -> bool:
        """Whether it is time to sleep."""
        return self.size >= self.capacity

    @property
    def n_bytes(self) -> int:
        """Bytes of the stored samples and targets."""
        tensors = [part.x for part in self._parts] + ([] if self._y is None else [self._y])
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def add(self, batch: SampleBatch) -> SampleBatch | None:
        """Stores copies of samples while there is room; returns those that found none, or None."""
        room = self.capacity - self.size
        if room < len(batch.samples):
            rest = batch.rows(torch.arange(max(0, room), len(batch.samples)))
            batch = batch.rows(torch.arange(max(0, room)))
        else:
            rest = None
        if len(batch.samples):
            self._append(batch.samples.x)
            if batch.y is not None:
                self._y = batch.y.clone() if self._y is None else torch.cat([self._y, batch.y])
            self.size += len(batch.samples)
            self._batch = None
        return rest

    def batch(self) -> SampleBatch:
        """Returns all samples with their targets; the same object until the memory changes."""
        if self._batch is None:
            x = torch.cat([part.x for part in self._parts])
            self._batch = SampleBatch(Samples(x, self._parts), self._y)
        return self._batch

    def keep(self, rows: Tensor) -> SampleBatch:
        """Keeps the samples of a mask (n,); returns the others."""
        batch = self.batch()
        kept, others = batch.rows(rows), batch.select(~rows)
        self.clear()
        self.add(kept)
        return others

    def extend(self, other: SampleBatch) -> None:
        """Stores samples whether there is room or not, until the next sleep.

        Where both hold some, all are sorted, so that it does not matter which came first.
        """
        if self.size:
            mine = self.batch()
            x = torch.cat([mine.samples.x, other.samples.x.to(self._device)])
            y = None if mine.y is None or other.y is None else torch.cat([mine.y, other.y])
            rows = x.flatten(1).cpu().double()
            keys = rows if y is None else torch.cat([y.reshape(len(x), -1).double(), rows], dim=1)
            order = torch.from_numpy(np.lexsort(keys.T.flip(0).numpy()))
            other = SampleBatch(Samples(x[order.to(x.device)]), None if y is None else y[order])
        capacity, self.capacity = self.capacity, len(other.samples)
        self.clear()
        self.add(other)
        self.capacity = capacity

    def relabel(self, mapping: Sequence[int]) -> None:
        """Gives class c the index mapping[c]."""
        if self._y is not None:
            self._y, self._batch = torch.tensor(mapping)[self._y], None

    def clear(self) -> None:
        """Forgets everything."""
        self._parts, self._y, self.size, self._batch = [], None, 0, None

    def state_dict(self) -> State:
        if not self.size:
            return {"x": None, "y": None}
        x, y = self.batch()
        return {"x": x.x.clone(), "y": y.clone() if y is not None else None}

    def load_state_dict(self, state: State) -> None:
        self.clear()
        if state["x"] is not None:
            y = None if state["y"] is None else state["y"].cpu()
            self.extend(SampleBatch(Samples(state["x"].to(self._device)), y))

    def _append(self, x: Tensor) -> None:
        """Fills the last part, then makes new ones."""
        if self._parts and len(self._parts[-1]) < _PART:
            x = torch.cat([self._parts.pop().x, x])
        self._parts += [Samples(part.clone()) for part in torch.split(x, _PART)]
