"""The short-term memory: samples that no expert explains, until there are enough to found a new one."""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.state import State

__all__ = ["ShortTermMemory"]


class ShortTermMemory:
    """Holds at most `capacity` samples in the order of their arrival.

    Args:
        capacity: M in the paper.
        device: Where the samples are kept.
        target_device: Where their targets are kept; by default in the same place.
    """

    def __init__(self, capacity: int, device: torch.device, target_device: torch.device | None = None) -> None:
        self.capacity = capacity
        self._device, self._target_device = device, target_device or device
        self._x: list[Tensor] = []
        self._y: list[Tensor] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def room(self) -> int:
        """How many more samples fit."""
        return self.capacity - self._size

    @property
    def is_full(self) -> bool:
        """Whether it is time to sleep."""
        return self.room <= 0

    @property
    def n_bytes(self) -> int:
        """Bytes of the stored samples and targets."""
        return sum(part.numel() * part.element_size() for part in (*self._x, *self._y))

    def add(self, x: Tensor, y: Tensor | None) -> None:
        """Stores copies of samples (n, ...) with n <= room."""
        if len(x) > self.room:
            raise ValueError(f"{len(x)} samples do not fit: there is room for {self.room} of {self.capacity}")
        if len(x):
            self._x.append(x.clone())
            self._size += len(x)
            if y is not None:
                self._y.append(y.clone())

    def data(self) -> tuple[Tensor, Tensor | None]:
        """All samples, (n, ...), with their targets."""
        if len(self._x) > 1:
            self._x = [torch.cat(self._x)]
            self._y = [torch.cat(self._y)] if self._y else []
        return self._x[0], self._y[0] if self._y else None

    def clear(self) -> None:
        """Forgets everything."""
        self._x, self._y, self._size = [], [], 0

    def state_dict(self) -> State:
        """The samples."""
        if not self._size:
            return {"x": None, "y": None}
        x, y = self.data()
        return {"x": x.clone(), "y": y.clone() if y is not None else None}

    def load_state_dict(self, state: State) -> None:
        """Restores the samples."""
        self.clear()
        if state["x"] is not None:
            y = state["y"].to(self._target_device) if state["y"] is not None else None
            self.add(state["x"].to(self._device), y)
