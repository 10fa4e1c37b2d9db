"""The latest rows of a stream, and the range that rows are kept to."""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.state import State, StateError, expect, integers, tensor

__all__ = ["RecentRows", "usual_range"]

_SPANS = 3.0
"""Spans between the 5th and the 95th percentile that a value may lie beyond them; a normal one never does."""


class RecentRows:
    """The last `capacity` rows with their targets, on the host.

    Args:
        capacity: Rows kept at most.

    Example:
        >>> rows = RecentRows(3)
        >>> rows.add(torch.arange(8.0).reshape(4, 2), torch.arange(4))
        >>> len(rows), rows.y.tolist()
        (3, [1, 2, 3])
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.x, self.y = torch.zeros(0, 0), torch.zeros(0)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def n_bytes(self) -> int:
        """Bytes of rows and targets."""
        return sum(part.numel() * part.element_size() for part in (self.x, self.y))

    def add(self, x: Tensor, y: Tensor) -> None:
        """Adds rows in place of the oldest.

        Args:
            x: (B, d).
            y: (B,) or (B, n_outputs).
        """
        if not len(self):
            self.x, self.y = x[:0], y[:0]
        first = max(0, len(self.x) + len(x) - self.capacity)
        self.x, self.y = (torch.cat([old[first:], new[-self.capacity :]]) for old, new in ((self.x, x), (self.y, y)))

    def state_dict(self) -> State:
        """Returns rows and targets."""
        return {"x": self.x.clone(), "y": self.y.clone()}

    def load_state_dict(self, state: State, *, n_columns: int, n_classes: int) -> None:
        """Restores them to the bit.

        Args:
            state: As :meth:`state_dict` returns it.
            n_columns: d.
            n_classes: Class indices lie below it; 0 where targets are values.
        """
        n = expect(state, {"x": tensor("n", "d", dtype=torch.float32)})["n"]
        if n > self.capacity:
            raise StateError(f"at most {self.capacity} rows are kept; got {n}")
        if n:
            y = integers("n", low=0, below=n_classes) if n_classes else tensor("n", "o", dtype=torch.float32)
            expect(state, {"x": tensor("n", "d", dtype=torch.float32), "y": y}, n=n, d=n_columns)
        self.x, self.y = state["x"].cpu().clone(), state["y"].cpu().clone()


def usual_range(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the bounds between which values of each column usually lie, two of (d,).

    A single wild row does not move them. A column that is the same in nine of ten rows is measured by its smallest
    other value.

    Args:
        rows: (n, d).

    Example:
        >>> low, high = usual_range(torch.cat([torch.linspace(0, 1, 100), torch.tensor([1e10])])[:, None])
        >>> bool(high < 5)
        True
    """
    rows = rows.double()
    low, middle, high = torch.quantile(rows, torch.tensor([0.05, 0.5, 0.95], dtype=torch.float64), dim=0)
    away = (rows - middle).abs()
    smallest = torch.where(away > 0, away, torch.inf).amin(dim=0)
    span = torch.where(high > low, high - low, torch.where(smallest.isfinite(), smallest, 0.0))
    return (low - _SPANS * span).float(), (high + _SPANS * span).float()
