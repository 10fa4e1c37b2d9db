"""Rows that are kept: the latest of every label, and the nearest of them as members of a pool.

Where there is no room left, the label that has most rows gives up its oldest: rows of a label that stays away are
never displaced by those of one that does not.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cndpm.experts.pool.moments import Labels
from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, State, StateError, expect, integers, tensor, whole

__all__ = ["KeptRows", "neighbours"]

Singles = NDArray[np.float32]

_WINDOWS = (200, 1000, 1 << 62)
"""Rows among which neighbours are sought: the latest tell a change, all of them a rule of many parts."""

_N_NEAREST, _N_NEAREST_WHITENED = 5, 15
"""Neighbours in standard units, and where columns are rotated and stretched as labels scatter."""

N_NEIGHBOUR_MEMBERS = len(_WINDOWS) + 1

_PSEUDO = 0.1
"""Votes and shares that every label has without a neighbour."""


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
        >>> rows.add(x, x, np.array([0, 1, 1, 1]))
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
        self.counts, self._n_kept = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._size, self._d = 0, d
        none, nothing = np.zeros((0, d)), np.zeros(0, np.int64)
        self._hold(none, nothing, nothing, nothing, none)

    def _hold(self, x: Floats, y: Labels, serial: Labels, nth: Labels, z: Floats) -> None:
        """Keeps these rows, with z in standard units."""
        self._size = len(y)
        near = z.astype(np.float32), (z @ self.metric).astype(np.float32)
        self._parts: list[NDArray[Any]] = [x, y, serial, nth, *near, *map(_lengths, near)]

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
            self.counts, self._n_kept = np.pad(self.counts, (0, more)), np.pad(self._n_kept, (0, more))

    def add(self, x: Floats, z: Floats, y: Labels) -> None:
        """Adds rows in their order.

        Args:
            x: (B, d).
            z: The same in standard units, (B, d).
            y: Their labels, (B,).
        """
        if self.room:
            if (n := min(self._size + len(y), self.room)) > len(self._parts[1]):
                more = min(max(64, 2 * n), self.room) - len(self._parts[1])
                self._parts = [np.concatenate([p, np.zeros((more, *p.shape[1:]), p.dtype)]) for p in self._parts]
            near = z.astype(np.float32), (z @ self.metric).astype(np.float32)
            nth, places = np.empty_like(y), np.empty_like(y)
            for i, label in enumerate(y.tolist()):
                places[i], nth[i] = self._size, self.counts[label]
                if self._size < self.room:
                    self._size += 1
                else:
                    places[i] = self._oldest_of_most()
                self._parts[1][places[i]], self._parts[3][places[i]] = label, nth[i]
                self.counts[label] += 1
                self._n_kept[label] += 1
            rows = (x, y, np.arange(self.n, self.n + len(y)), nth, *near, *map(_lengths, near))
            for part, values in zip(self._parts, rows, strict=True):
                part[places] = values
        self.n += len(y)

    def _oldest_of_most(self) -> int:
        most = int(self._n_kept.argmax())
        self._n_kept[most] -= 1
        mine = np.flatnonzero(self.y == most)
        return int(mine[self.nth[mine].argmin()])

    def measure(self, z: Floats, inverse: Floats) -> None:
        """Takes over units, and the covariance that distances are measured by.

        Args:
            z: All rows in standard units, (m, d).
            inverse: Inverse of the labels' covariance, (d, d).
        """
        self.metric = np.asarray(np.linalg.cholesky(inverse), dtype=np.float64)
        self._hold(self.x, self.y, self.serial, self.nth, z)

    def latest(self, room: int) -> NDArray[np.int64]:
        """Returns where the latest rows of every label are, as many of each as fit into `room`, (r,)."""
        if self._size <= room:
            return np.arange(self._size)
        y, nth = self._parts[1][: self._size], self._parts[3][: self._size]
        return np.flatnonzero(self.counts[y] - nth <= _depth(self._n_kept, room))

    def relabel(self, places: Labels) -> None:
        """Gives labels other numbers: label y becomes `places[y]`, (C,), and there is room for all of them."""
        self.admit(len(places))
        self._parts[1] = places[self._parts[1]]
        order = np.argsort(places)
        self.counts, self._n_kept = self.counts[order], self._n_kept[order]

    def drop(self, is_gone: NDArray[np.bool_]) -> None:
        """Forgets rows, (m,) bool, as if they had never come; units must be measured anew."""
        gone, stays = np.bincount(self.y[is_gone], minlength=len(self.counts)), ~is_gone
        self.counts, self._n_kept, self.n = self.counts - gone, self._n_kept - gone, self.n - int(is_gone.sum())
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
        self._n_kept = np.bincount(arrays["y"], minlength=found["labels"])
        self._hold(arrays["x"], arrays["y"], arrays["serial"], arrays["nth"], arrays["x"])
        return found

    def restate(self, z: Floats) -> None:
        """Takes over rows in standard units, (m, d)."""
        self._hold(self.x, self.y, self.serial, self.nth, z)

    def near(self, z: Floats) -> list[Near]:
        """Returns how far rows (B, d), in standard units, are from those kept: plain and whitened."""
        asked, found, n = (z.astype(np.float32), (z @ self.metric).astype(np.float32)), [], self._size
        for a, b, lengths in zip(asked, self._parts[4:6], self._parts[6:], strict=True):
            squares: Singles = a @ b[:n].T
            squares *= -2
            squares += lengths[:n]
            squares += np.einsum("ij,ij->i", a, a)[:, None]
            found.append(Near(np.maximum(squares, 0, out=squares), a, b))
        return found


class Near(NamedTuple):
    """Holds squared distances (B, m), to rounding, of rows `asked`, (B, d), from rows `kept`, (m or more, d)."""

    squares: Singles
    asked: Singles
    kept: Singles


def neighbours(kept: KeptRows, z: Floats, *, without_itself: bool = False) -> Floats:
    """Returns what the nearest kept rows say: log votes less log shares of the labels, (N_NEIGHBOUR_MEMBERS, B, C).

    Args:
        kept: The rows.
        z: Rows that are asked about, in standard units, (B, d).
        without_itself: Whether rows in the same place do not count: they are the row that is asked about.
    """
    y, n_labels = kept.y, len(kept.counts)
    told = np.zeros((N_NEIGHBOUR_MEMBERS, len(z), n_labels))
    if len(y) <= _N_NEAREST:
        return told
    plain, whitened = kept.near(z)
    if without_itself:
        is_same = plain.squares < 1e-5
        plain.squares[is_same] = whitened.squares[is_same] = np.inf
    for i, room in enumerate(_WINDOWS):
        if i and len(y) <= _WINDOWS[i - 1]:  # the window before holds all rows
            told[i] = told[i - 1]
        else:
            told[i] = _votes(plain, y, None if len(y) <= room else kept.latest(room), _N_NEAREST, n_labels)
    told[-1] = _votes(whitened, y, None, _N_NEAREST_WHITENED, n_labels)
    return told


def _votes(near: Near, y: Labels, at: Labels | None, k: int, n_labels: int) -> Floats:
    """Returns log votes of the k nearest, all or of those `at`, by distance, less log shares of labels, (B, C)."""
    among, labels = (near.squares, y) if at is None else (near.squares[:, at], y[at])
    k, n = min(k, len(labels)), len(among)
    chosen = np.argpartition(among, k - 1, axis=1)[:, :k]
    is_out = np.isinf(np.take_along_axis(among, chosen, axis=1))
    steps = (near.asked[:, None] - near.kept[chosen if at is None else at[chosen]]).astype(np.float64)
    weights = np.where(is_out, 0.0, 1 / (1e-6 + np.sqrt(np.einsum("bkd,bkd->bk", steps, steps))))  # exactly
    weights *= k / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    places = np.arange(n)[:, None] * n_labels + labels[chosen]
    votes = np.bincount(places.ravel(), weights.ravel(), n * n_labels).reshape(n, n_labels)
    shares = np.bincount(labels, minlength=n_labels) / len(labels)
    log_votes: Floats = np.log(votes + _PSEUDO) - np.log(shares + _PSEUDO)
    return log_votes


def _lengths(rows: Singles) -> Singles:
    """Returns squared lengths, (m,)."""
    lengths: Singles = np.einsum("ij,ij->i", rows, rows)
    return lengths


def _depth(counts: NDArray[np.int64], room: int) -> int:
    """Returns how many of the latest rows of every label fit into room, where labels have `counts` rows, (C,)."""
    ordered = np.sort(counts[counts > 0])
    below = np.concatenate([[0], np.cumsum(ordered)[:-1]])
    n_above = np.arange(len(ordered), 0, -1)
    first = int(np.argmax(below + ordered * n_above >= room))
    return max(1, int((room - below[first]) // n_above[first]))
