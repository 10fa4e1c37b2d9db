"""The latest rows with their targets, and which of them are nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.experts.pool.representations import Floats
from cndpm.state import State, expect, tensor, whole

__all__ = ["WINDOWS", "LatestRows"]

WINDOWS = ((200, 5), (1000, 5), (5000, 5), (5000, 15))
"""Latest rows among which to look, and how many of the nearest to take."""

Nearest = tuple[NDArray[np.int64], Floats, Floats]


class LatestRows:
    """A buffer of the latest rows in the order in which they came.

    Args:
        n_columns: d.
        n_outputs: o.
        room: Rows kept; 0 keeps none.

    Example:
        >>> rows = LatestRows(1, 1, room=3)
        >>> rows.add(np.arange(10.0)[:, None], np.arange(10.0)[:, None])
        >>> len(rows), rows.x.ravel()
        (3, array([7., 8., 9.]))
    """

    def __init__(self, n_columns: int, n_outputs: int, room: int) -> None:
        self.room, self._end, self._begin, self.n = room, 0, 0, 0
        self._x, self._y = np.zeros((2 * room, n_columns)), np.zeros((2 * room, n_outputs))
        self._z = np.zeros((2 * room, n_columns), dtype=np.float32)
        self._lengths = np.zeros(2 * room, dtype=np.float32)

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def serial(self) -> NDArray[np.int64]:
        """The number of each row in the stream, (n,)."""
        return np.arange(self.n - len(self), self.n)

    @property
    def n_bytes(self) -> int:
        """Bytes of the rows, as they came and in standard units."""
        return sum(part[: len(self)].nbytes for part in self._parts)

    @property
    def x(self) -> Floats:
        """Rows, the latest last, (n, d)."""
        return self._x[self._begin : self._end]

    @property
    def y(self) -> Floats:
        """Targets, (n, o)."""
        return self._y[self._begin : self._end]

    @property
    def _parts(self) -> tuple[NDArray[Any], ...]:
        return self._x, self._y, self._z, self._lengths

    def add(self, x: Floats, y: Floats, z: Floats | None = None) -> None:
        """Keeps rows.

        Args:
            x: (B, d).
            y: (B, o).
            z: Where they lie among the others, (B, d).
        """
        self.n += len(x)
        x, y = x[max(0, len(x) - self.room) :], y[max(0, len(y) - self.room) :]
        if self._end + len(x) > 2 * self.room:
            for part in self._parts:
                part[: len(self)] = part[self._begin : self._end].copy()
            self._begin, self._end = 0, len(self)
        here = slice(self._end, self._end + len(x))
        self._x[here], self._y[here] = x, y
        self._end += len(x)
        if z is not None:
            self.place(z[max(0, len(z) - self.room) :])
        self._begin = max(self._begin, self._end - self.room)

    def place(self, z: Floats) -> None:
        """Says where the latest rows lie, (B, d)."""
        here = slice(self._end - len(z), self._end)
        self._z[here] = z
        self._lengths[here] = np.square(self._z[here]).sum(axis=1)

    def near(self, z: Floats) -> list[Nearest]:
        """Looks for the nearest of rows at (B, d).

        Returns:
            For each window which rows they are, their weights, and the squares of their distances, (B, k) each; k is 0
            where none is kept.
        """
        here, single = slice(self._begin, self._end), z.astype(np.float32)
        squares = self._lengths[here] - 2 * (single @ self._z[here].T)  # and that of z, which is the same for all
        found = []
        for room, most in WINDOWS:
            skipped, k = max(0, len(self) - room), min(most, len(self))
            at = (
                np.argpartition(squares[:, skipped:], k - 1, axis=1)[:, :k] + skipped
                if k
                else np.empty((len(z), 0), int)
            )
            steps = (single[:, None] - self._z[here][at]).astype(np.float64)
            far = np.einsum("bkd,bkd->bk", steps, steps)
            weights = 1 / (1e-6 + np.sqrt(far))
            found.append((at, weights / weights.sum(axis=1, keepdims=True), far))
        return found

    def state_dict(self) -> State:
        """Returns rows and targets, and where they lie."""
        here = slice(self._begin, self._end)
        parts = zip(("x", "y", "z"), self._parts, strict=False)
        return {**{name: torch.from_numpy(part[here].copy()) for name, part in parts}, "n": self.n}

    def load_state_dict(self, state: State) -> None:
        """Takes a state of :meth:`state_dict`."""
        d, o = self._x.shape[1], self._y.shape[1]
        z = tensor("rows", d, dtype=torch.float32)
        expect(state, {"x": tensor("rows", d), "y": tensor("rows", o), "z": z, "n": whole()})
        self._begin = self._end = 0
        self.add(*(state[name].numpy() for name in ("x", "y", "z")))
        self.n = state["n"]
