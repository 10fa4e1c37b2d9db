"""The latest rows with their targets, and what the nearest of them say."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.experts.pool.representations import Floats
from cndpm.state import State, expect, tensor, whole

__all__ = ["WINDOWS", "LatestRows", "Near"]

WINDOWS = ((200, 5), (1000, 5), (5000, 5), (5000, 15))
"""Latest rows among which to look, and how many of the nearest to take: those of the pool for classes."""

_LOCAL = 100
"""Nearest rows whose errors tell how wide an answer should be here: of 50 and 100, what covered better where noise grew
with x, on eight seeds that nothing is reported on."""


class Near:
    """What the nearest rows say of B rows.

    Attributes:
        mean: Means of the nearest, the nearer the heavier, (4, B, o).
        far: Mean square of the distances to them, (4, B).
        width: Mean square of the errors near, as a ratio to those everywhere, (B,).
    """

    def __init__(self, mean: Floats, far: Floats, width: Floats) -> None:
        self.mean, self.far, self.width = mean, far, width


class LatestRows:
    """A buffer of the latest rows in the order in which they came.

    Args:
        n_columns: d.
        n_outputs: o.
        room: Rows kept; 0 keeps none.

    Example:
        >>> rows = LatestRows(1, 1, room=3)
        >>> rows.add(np.arange(10.0)[:, None], np.arange(10.0)[:, None], np.ones(10))
        >>> len(rows), rows.x.ravel()
        (3, array([7., 8., 9.]))
    """

    def __init__(self, n_columns: int, n_outputs: int, room: int) -> None:
        self.room, self._end, self._begin, self.n = room, 0, 0, 0
        self._x, self._y = np.zeros((2 * room, n_columns)), np.zeros((2 * room, n_outputs))
        self._ratios = np.ones(2 * room)
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
        return sum(part[: len(self)].nbytes for part in (self._x, self._y, self._ratios, self._z, self._lengths))

    @property
    def x(self) -> Floats:
        """Rows, the latest last, (n, d)."""
        return self._x[self._begin : self._end]

    @property
    def y(self) -> Floats:
        """Targets, (n, o)."""
        return self._y[self._begin : self._end]

    def add(self, x: Floats, y: Floats, ratios: Floats, z: Floats | None = None) -> None:
        """Keeps rows.

        Args:
            x: (B, d).
            y: (B, o).
            ratios: Squared errors in units of the variance that was answered, (B,).
            z: Where they lie among the others, (B, d).
        """
        if not self.room:
            self.n += len(x)
            return
        for begin in range(0, len(x), self.room):
            part = slice(begin, begin + self.room)
            self._add(x[part], y[part], ratios[part], None if z is None else z[part])

    def _add(self, x: Floats, y: Floats, ratios: Floats, z: Floats | None) -> None:
        if self._end + len(x) > 2 * self.room:
            for part in (self._x, self._y, self._ratios, self._z, self._lengths):
                part[: len(self)] = part[self._begin : self._end].copy()
            self._begin, self._end = 0, len(self)
        here = slice(self._end, self._end + len(x))
        self._x[here], self._y[here], self._ratios[here] = x, y, ratios
        if z is not None:
            self._place(here, z)
        self._end += len(x)
        self.n += len(x)
        self._begin = max(self._begin, self._end - self.room)

    def place(self, z: Floats) -> None:
        """Says anew where all rows lie, (n, d)."""
        self._place(slice(self._begin, self._end), z)

    def _place(self, here: slice, z: Floats) -> None:
        self._z[here] = z
        self._lengths[here] = np.square(self._z[here]).sum(axis=1)

    def near(self, z: Floats) -> Near:
        """Looks for the nearest of rows at (B, d); where none is kept, means are 0 and far away."""
        if not len(self):
            shape = (len(WINDOWS), len(z))
            return Near(np.zeros((*shape, self._y.shape[1])), np.full(shape, 1e6), np.ones(len(z)))
        here = slice(self._begin, self._end)
        single = z.astype(np.float32)
        squares = self._lengths[here] - 2 * (single @ self._z[here].T)
        squares += np.square(single).sum(axis=1)[:, None]
        np.maximum(squares, 0, out=squares)
        ordered, at = self._nearest(single, squares, _LOCAL)
        ratios = self._ratios[here][at]
        width = np.maximum(ratios.mean(axis=1), 1e-3)
        found = [self._mean(single, squares, ordered, at, *window) for window in WINDOWS]
        return Near(np.stack([mean for mean, _ in found]), np.stack([far for _, far in found]), width)

    def _nearest(
        self, z: NDArray[np.float32], squares: NDArray[np.float32], k: int, skipped: int = 0
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Returns squared distances to the k nearest in order, computed exactly, and where those are, (B, k) each."""
        n = squares.shape[1]
        at = skipped + (np.argpartition(squares, k - 1, axis=1)[:, :k] if k < n else np.argsort(squares, axis=1))
        steps = (z[:, None] - self._z[self._begin : self._end][at]).astype(np.float64)
        found = np.einsum("bkd,bkd->bk", steps, steps)
        order = np.argsort(found, axis=1, kind="stable")
        return np.take_along_axis(found, order, axis=1), np.take_along_axis(at, order, axis=1)

    def _mean(
        self,
        single: NDArray[np.float32],
        squares: NDArray[np.float32],
        ordered: Floats,
        at: NDArray[np.int64],
        room: int,
        k: int,
    ) -> tuple[Floats, Floats]:
        skipped = len(self) - min(room, len(self))
        if skipped:
            ordered, at = self._nearest(single, squares[:, skipped:], k, skipped)
        distance = np.sqrt(ordered[:, :k])
        weights = 1 / (1e-6 + distance)
        weights /= weights.sum(axis=1, keepdims=True)
        mean = np.einsum("bk,bko->bo", weights, self.y[at[:, :k]])
        return mean, np.square(distance).mean(axis=1)

    def state_dict(self) -> State:
        """Returns rows, targets and ratios; where they lie follows from them."""
        here = slice(self._begin, self._end)
        parts: dict[str, NDArray[Any]] = {"x": self._x, "y": self._y, "ratios": self._ratios, "z": self._z}
        return {**{name: torch.from_numpy(part[here].copy()) for name, part in parts.items()}, "n": self.n}

    def check(self, state: State) -> None:
        """Raises StateError where a state has another form."""
        d, o = self._x.shape[1], self._y.shape[1]
        z = tensor("rows", d, dtype=torch.float32)
        forms = {"x": tensor("rows", d), "y": tensor("rows", o), "ratios": tensor("rows"), "z": z, "n": whole()}
        expect(state, forms)

    def load_state_dict(self, state: State) -> None:
        """Takes a state of :meth:`state_dict`."""
        self.check(state)
        self._begin = self._end = 0
        self.add(*(state[name].numpy() for name in ("x", "y", "ratios", "z")))
        self.n = state["n"]
