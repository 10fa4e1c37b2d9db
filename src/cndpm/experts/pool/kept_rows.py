"""Rows that are kept: the latest of every label, and the nearest of them as members of a pool.

Where there is no room left, the label that has most rows gives up its oldest: rows of a label that stays away are
never displaced by those of one that does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cndpm.experts.pool.moments import Labels
from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, State, StateError, expect, integers, tensor, whole

__all__ = ["KeptRows", "neighbours"]

Singles = NDArray[np.float32]

_WINDOWS = (200,)
"""Latest rows among which neighbours are sought, beside all: they tell a change, all of them a rule of many parts."""

_N_NEAREST = 5
"""Neighbours in standard units, and where columns are rotated and stretched as labels scatter."""

N_NEIGHBOUR_MEMBERS = len(_WINDOWS) + 2

_METRICS = np.array([[[0]]] * (len(_WINDOWS) + 1) + [[[1]]])
"""Whether each of these members measures in standard units or in the latter ones."""

_AMONG = np.minimum(np.arange(N_NEIGHBOUR_MEMBERS), len(_WINDOWS))
"""Among which rows each of them looks: those of a window, or all."""

_ITSELF = float(np.finfo(np.float32).max)
"""Squared distance to a row that does not count; it is looked at when there is no other."""

PSEUDO = 0.1
"""Votes and shares that every label has without a neighbour, or a tree."""


class KeptRows(Keeps):
    """Keeps rows with their labels, in the units of a representation.

    Args:
        d: Columns.
        room: Rows kept at most.

    Attributes:
        counts: Rows of every label that ever came, (C,).
        n: All of them.
        metric: What standard units are multiplied by so that labels scatter as a ball, (d, d).

    Example:
        >>> rows = KeptRows(1, room=3)
        >>> rows.admit(2)
        >>> x = np.array([[5.0], [1.0], [2.0], [3.0]])
        >>> rows.add(x, rows.place(x), np.array([0, 1, 1, 1]))
        >>> sorted(rows.x.ravel().tolist())  # the label that has most gave up its oldest
        [2.0, 3.0, 5.0]
    """

    kept: ClassVar = {
        "x": tensor("rows", "d"),
        "y": integers("rows", low=0),
        "serial": integers("rows", low=0),
        "nth": integers("rows", low=0),
        "counts": integers("labels", low=0),
        "metric": tensor("d", "d"),
        "n": whole(),
    }

    def __init__(self, d: int, room: int) -> None:
        self.room, self.n, self.metric = room, 0, np.eye(d)
        self.counts = np.zeros(0, np.int64)
        self._size = 0
        none, nothing = np.zeros((0, d)), np.zeros(0, np.int64)
        self._hold(none, nothing, nothing, nothing, none)

    def _hold(self, x: Floats, y: Labels, serial: Labels, nth: Labels, z: Floats) -> None:
        """Keeps these rows, with z in standard units."""
        self._size = len(y)
        self._queues: list[deque[int]] = [deque() for _ in self.counts]
        for i in np.argsort(nth, kind="stable").tolist():
            self._queues[y[i]].append(i)
        self._parts: list[NDArray[Any]] = [x, y, serial, nth, self.place(z)]

    def __len__(self) -> int:
        return self._size

    @property
    def x(self) -> Floats:
        """The rows as they came, (m, d)."""
        return self._parts[0][: self._size]

    @property
    def y(self) -> Labels:
        """Their labels, (m,)."""
        return self._parts[1][: self._size]

    @property
    def z(self) -> Singles:
        """The same in standard units, (m, d)."""
        return self._parts[4][: self._size, 0, :-1]

    @property
    def serial(self) -> Labels:
        """The number of each in the stream, (m,)."""
        return self._parts[2][: self._size]

    @property
    def nth(self) -> Labels:
        """The number of each among those of its label, (m,)."""
        return self._parts[3][: self._size]

    @property
    def is_whole(self) -> bool:
        """Whether every row that came is still kept."""
        return len(self) == self.n

    @property
    def n_bytes(self) -> int:
        """Bytes of the rows, as they came and in two units."""
        return sum(part[: self._size].nbytes for part in self._parts)

    def admit(self, n_labels: int) -> None:
        """Makes room for labels below `n_labels`."""
        if (more := n_labels - len(self.counts)) > 0:
            self.counts = np.pad(self.counts, (0, more))
            self._queues += [deque() for _ in range(more)]

    def place(self, z: Floats) -> Singles:
        """Returns where rows in standard units (B, d) lie, (B, 2, d + 1): in these units, and whitened.

        Behind each stands its squared length, so that one product tells distances.
        """
        n, d = z.shape
        placed = np.empty((n, 2, d + 1), np.float32)
        placed[:, 0, :d], placed[:, 1, :d] = z, z @ self.metric
        at = placed[..., :d]
        np.einsum("bmd,bmd->bm", at, at, out=placed[..., d])
        return placed

    def add(self, x: Floats, placed: Singles, y: Labels) -> None:
        """Adds rows in their order.

        Args:
            x: (B, d).
            placed: Where they lie, (B, 2, d + 1); see :meth:`place`.
            y: Their labels, (B,).
        """
        if self.room:
            if (n := min(self._size + len(y), self.room)) > len(self._parts[1]):
                more = min(max(64, 2 * n), self.room) - len(self._parts[1])
                self._parts = [np.concatenate([p, np.zeros((more, *p.shape[1:]), p.dtype)]) for p in self._parts]
            nth, places = np.empty_like(y), np.empty_like(y)
            for i, label in enumerate(y.tolist()):
                if self._size < self.room:
                    place, self._size = self._size, self._size + 1
                else:
                    place = max(self._queues, key=len).popleft()  # the oldest of most
                self._queues[label].append(place)
                places[i], nth[i] = place, self.counts[label]
                self.counts[label] += 1
            for part, values in zip(self._parts, (x, y, np.arange(self.n, self.n + len(y)), nth, placed), strict=True):
                part[places] = values
        self.n += len(y)

    def measure(self, z: Floats, metric: Floats) -> None:
        """Takes over rows in standard units.

        Args:
            z: All of them, (m, d).
            metric: What they are multiplied by; see the attributes.
        """
        self.metric = np.ascontiguousarray(metric)
        self._hold(self.x, self.y, self.serial, self.nth, z)

    def latest(self, room: int) -> Labels:
        """Returns where the latest rows of every label are, as many of each as fit into `room`, (r,)."""
        return self._latest((room,))[0][0]

    def _latest(self, rooms: Iterable[int]) -> tuple[list[Labels], Floats]:
        """Returns the same for W rooms, (r,) each, and how many rows of every label that makes, (W, C)."""
        y, sizes = self._parts[1][: self._size], list(map(len, self._queues))
        n_behind = self.counts.take(y) - self._parts[3][: self._size]  # 1 for the latest of a label
        found, depths = [], []
        for room in rooms:
            depths.append(_depth(sizes, room) if self._size > room else self._size)
            found.append(np.flatnonzero(n_behind <= depths[-1]) if self._size > room else np.arange(self._size))
        return found, np.minimum(np.array(depths)[:, None], sizes).astype(np.float64)

    def relabel(self, places: Labels) -> None:
        """Gives labels other numbers: label y becomes `places[y]`, (C,), and there is room for all of them."""
        self.admit(len(places))
        self._parts[1] = places[self._parts[1]]
        order = np.argsort(places)
        self.counts, self._queues = self.counts[order], [self._queues[label] for label in order]

    def drop(self, is_gone: NDArray[np.bool_]) -> None:
        """Forgets rows, (m,) bool, as if they had never come; units must be measured anew."""
        gone, stays = np.bincount(self.y[is_gone], minlength=len(self.counts)), ~is_gone
        self.counts, self.n = self.counts - gone, self.n - int(is_gone.sum())
        x, y, serial, nth = self.x[stays], self.y[stays], self.serial[stays], self.nth[stays]
        serial -= np.searchsorted(np.sort(self.serial[is_gone]), serial)
        for label in np.flatnonzero(gone):
            mine = np.flatnonzero(y == label)
            nth[mine[np.argsort(nth[mine])]] = self.counts[label] - len(mine) + np.arange(len(mine))
        self._hold(x, y, serial, nth, x)

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        """Restores it to the bit, but for units, which must be measured anew.

        Args:
            state: As `state_dict` returns it.
            sizes: Of dimensions that are known: d, labels.
        """
        found = expect(state, self.kept, **sizes)
        arrays = {name: state[name].cpu().numpy().copy() for name in self.kept if name != "n"}
        if len(arrays["y"]) and arrays["y"].max() >= found["labels"]:
            raise StateError(f"'y' must hold labels below {found['labels']}; got {arrays['y'].max()}")
        self.counts, self.metric, self.n = arrays["counts"], arrays["metric"], state["n"]
        self._hold(arrays["x"], arrays["y"], arrays["serial"], arrays["nth"], arrays["x"])
        return found

    def squares(self, placed: Singles) -> Singles:
        """Returns squared distances of placed rows to those kept, less the squared lengths of the former, (2, B, m)."""
        turned = -2 * placed.transpose(1, 0, 2)
        turned[..., -1] = 1.0
        return np.asarray(turned @ self._parts[4][: self._size].transpose(1, 2, 0))


def neighbours(kept: KeptRows, placed: Singles, *, without_itself: bool = False) -> Floats:
    """Returns what the nearest kept rows say: log votes less log shares of the labels, (N_NEIGHBOUR_MEMBERS, B, C).

    Args:
        kept: The rows.
        placed: Where rows that are asked about lie, (B, 2, d + 1).
        without_itself: Whether rows in the same place do not count: they are the row that is asked about.
    """
    y, k = kept.y, _N_NEAREST
    if len(y) <= k:
        return np.zeros((N_NEIGHBOUR_MEMBERS, len(placed), len(kept.counts)))
    squares = kept.squares(placed)
    if without_itself:
        squares[:, squares[0] + placed[:, 0, -1:] < 1e-5] = _ITSELF
    found, sizes = kept._latest([*_WINDOWS, len(y)])
    in_windows = [at[squares[:1, :, at].argpartition(k - 1, axis=2)[:, :, :k]] for at in found[:-1]]
    chosen = np.concatenate([*in_windows, _smallest(squares, k)])
    near, asked = kept._parts[4][chosen, _METRICS], placed.transpose(1, 0, 2)[_METRICS[:, 0, 0], :, None]
    away = np.subtract(near, asked, dtype=np.float64)[..., :-1]
    weights = 1 / (1e-6 + np.sqrt(np.einsum("wbkd,wbkd->wbk", away, away)))  # exactly, for the nearest matter most
    if without_itself:
        weights[squares[_METRICS, np.arange(len(placed))[:, None], chosen] == _ITSELF] = 0.0
    return _votes(weights, y[chosen], sizes.take(_AMONG, axis=0))


def _smallest(values: Singles, k: int) -> NDArray[np.int64]:
    """Returns where the k smallest of values (W, B, m) are, (W, B, k); of many rows k searches take the least time."""
    if values.shape[1] == 1:
        return values.argpartition(k - 1, axis=2)[:, :, :k]
    rest, found = values.reshape(-1, values.shape[2]).copy(), []
    for _ in range(k):
        found.append(rest.argmin(axis=1))
        rest[np.arange(len(rest)), found[-1]] = np.inf
    return np.stack(found, axis=1).reshape(*values.shape[:2], k)


def _votes(weights: Floats, y: NDArray[np.int64], sizes: Floats) -> Floats:
    """Returns log votes less log shares, (W, B, C), of rows of labels y (W, B, k), chosen among so many, (W, C)."""
    n_ways, n, k = y.shape
    n_labels = sizes.shape[1]
    weights *= k / np.maximum(np.add.reduce(weights, axis=2, keepdims=True), 1e-300)
    places = np.arange(0, n_ways * n * n_labels, n_labels).reshape(n_ways, n, 1) + y
    votes = np.bincount(places.ravel(), weights.ravel(), n_ways * n * n_labels).reshape(n_ways, n, n_labels)
    shares = sizes / np.add.reduce(sizes, axis=1, keepdims=True)
    return np.asarray(np.log(votes + PSEUDO) - np.log(shares + PSEUDO)[:, None])


def _depth(sizes: list[int], room: int) -> int:
    """Returns how many of the latest rows of every label fit into room, where labels have so many rows."""
    n = len(sizes)
    for size in sorted(sizes):
        if size * n >= room:
            break
        room, n = room - size, n - 1
    return max(1, room // max(1, n))
