"""Trees grown on the rows kept, one at a time: for rules that are thresholds within thresholds.

They are a forest whose trees take turns: when a part more rows have come, the oldest makes way for one that is grown
on five in eight of the latest rows. Rows that were kept are asked of those trees alone that never met them.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor

from cndpm.experts.pool.kept_rows import PSEUDO, KeptRows
from cndpm.experts.pool.moments import Labels
from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, State, StateError, integers, tensor, whole

_MOST = 10
"""Trees that vote: as many as in the forests of river."""

_EVERY = 0.04
"""Part of the rows that come before another tree is grown, which are two a tree at least."""

_ALL_NODES = 50_000
"""Comparisons up to which all nodes are asked at once, which takes fewer steps than going from node to node."""

_OF_NODES = ("columns", "thresholds", "below", "above", "labels")


class Trees(Keeps):
    """Grows trees, and has them vote. T trees with N nodes in all, C labels.

    Attributes:
        numbers: Of the trees, counted from the first one that was grown, (T,).
        shares: Of the labels among the rows of each, (T, C).
        sizes: Their nodes, (T,).
        columns: What nodes look at, (N,).
        thresholds: Up to which a value goes `below`, (N,).
        below: Nodes from here to the next one, (N,); 0 at a leaf.
        above: The same for larger values, (N,).
        labels: That of a leaf, and of most rows at another node, (N,).
        n_grown: Trees that were ever grown.
        grown_at: Rows that had come by then.
        since: The number of the first row that trees are grown on.

    Example:
        >>> x = np.random.default_rng(0).uniform(size=(400, 2))
        >>> rows, trees = KeptRows(2, room=400), Trees()
        >>> rows.admit(2)
        >>> trees.admit(2)
        >>> rows.add(x, rows.place(x), ((x > 0.5).sum(axis=1) == 1).astype(int))
        >>> trees.grow(rows, seed=0)
        >>> trees.answer(np.array([[0.2, 0.8], [0.8, 0.8]]))[0].argmax(axis=1)
        array([1, 0])
    """

    kept: ClassVar = {
        "numbers": integers("trees", low=0),
        "shares": tensor("trees", "labels"),
        "sizes": integers("trees", low=1),
        "columns": integers("nodes", low=0),
        "thresholds": tensor("nodes"),
        "below": integers("nodes", low=0),
        "above": integers("nodes", low=0),
        "labels": integers("nodes", low=0),
        "n_grown": whole(0, 1 << 32),
        "grown_at": whole(),
        "since": whole(),
    }

    def __init__(self) -> None:
        self.n_grown, self.grown_at, self.shares = 0, 0, np.zeros((0, 0))
        self.begin(0)

    def __len__(self) -> int:
        return len(self.sizes)

    def begin(self, serial: int) -> None:
        """Forgets all trees; others are grown on rows from this number on."""
        self.since, self.shares, self.thresholds = serial, self.shares[:0], np.zeros(0)
        self.numbers = self.sizes = self.columns = self.below = self.above = self.labels = np.zeros(0, np.int64)
        self._pack()

    def admit(self, n_labels: int) -> None:
        """Makes room for labels below `n_labels`."""
        self.shares = np.pad(self.shares, ((0, 0), (0, max(0, n_labels - self.shares.shape[1]))))
        self._pack()

    def relabel(self, places: Labels) -> None:
        """Gives labels other numbers: label y becomes `places[y]`, (C,), and there is room for all of them."""
        self.admit(len(places))
        self.shares, self.labels = self.shares[:, np.argsort(places)], places[self.labels]
        self._pack()

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all trees."""
        return sum(int(getattr(self, name).size) for name in _OF_NODES) + self.shares.size

    # Growing

    def grow(self, rows: KeptRows, seed: int) -> None:
        """Grows a tree on some of the rows kept, half of the room at most, when one is due; a seed draws columns."""
        if rows.n - self.grown_at < max(2 * _MOST, _EVERY * min(rows.n - self.since, rows.room)):
            return
        self.grown_at, serial = rows.n, rows.serial
        drawn = np.flatnonzero(_is_drawn(serial, self.n_grown) & (serial >= self.since))
        drawn = drawn[np.argsort(serial[drawn])[-max(1, rows.room // 2) :]]
        labels, y = np.unique(rows.y[drawn], return_inverse=True)
        if len(y) < max(2 * _MOST, 2 * len(labels)):
            return
        # The squared error of indicators is Gini's impurity, and labels are not checked at the cost of half a tree.
        made = DecisionTreeRegressor(max_features="sqrt", random_state=(seed + self.n_grown) % (1 << 32))
        with config_context(skip_parameter_validation=True):
            tree = made.fit(rows.z[drawn], np.eye(len(labels))[y], check_input=False).tree_
        at = np.arange(tree.node_count)
        is_inner = tree.children_left >= 0
        of_nodes = (
            np.where(is_inner, tree.feature, 0),
            np.where(is_inner, tree.threshold, 0.0),
            np.where(is_inner, tree.children_left - at, 0),
            np.where(is_inner, tree.children_right - at, 0),
            labels[tree.value[:, :, 0].argmax(axis=1)],
        )
        gone = int(len(self.sizes) == _MOST)
        n_gone = int(self.sizes[:gone].sum())
        for name, values in zip(_OF_NODES, of_nodes, strict=True):
            setattr(self, name, np.append(getattr(self, name)[n_gone:], values))
        self.sizes = np.append(self.sizes[gone:], tree.node_count)
        self.numbers = np.append(self.numbers[gone:], self.n_grown)
        shares = np.bincount(labels[y], minlength=self.shares.shape[1]) / len(y)
        self.shares = np.append(self.shares[gone:], shares[None], axis=0)
        self.n_grown += 1
        self._pack()

    def _pack(self) -> None:
        """Makes what answers use: where trees begin and each node leads, how deep they are, and usual log shares."""
        at = np.arange(len(self.columns))
        self._roots = np.cumsum(self.sizes) - self.sizes
        self._left, self._right = at + self.below, at + self.above
        self._depth, level = 0, self._roots
        while len(level := level[self.below[level] > 0]):
            self._depth, level = self._depth + 1, np.concatenate([self._left[level], self._right[level]])
        self._usual = np.log(self.shares.sum(axis=0) / max(len(self.shares), 1) + PSEUDO)

    # Answers

    def answer(self, z: Floats, serial: Labels | None = None) -> Floats:
        """Returns log votes less log shares of the labels, (1, B, C).

        Args:
            z: Rows in standard units, (B, d).
            serial: Their numbers where they were kept, (B,): what was grown on a row has no vote.
        """
        n_trees, n_labels = self.shares.shape
        if not n_trees:
            return np.zeros((1, len(z), n_labels))
        places = np.arange(0, len(z) * n_labels, n_labels) + self.labels[self._leaves(z)]
        weights, usual = None, self._usual
        if serial is not None:
            has_vote = ~_is_drawn(serial, self.numbers[:, None])
            weights = has_vote * (n_trees / np.maximum(has_vote.sum(axis=0), 1))
            usual = np.log(weights.T @ self.shares / n_trees + PSEUDO)
            weights = weights.ravel()
        votes = np.bincount(places.ravel(), weights, len(z) * n_labels).reshape(1, len(z), n_labels)
        return np.asarray(np.log(votes + PSEUDO) - usual)

    def _leaves(self, z: Floats) -> NDArray[np.int64]:
        """Returns the leaves that rows (B, d) come to, (T, B)."""
        n, d, n_nodes = *z.shape, len(self.columns)
        if n * n_nodes <= _ALL_NODES:  # where each would lead is found at once, and steps are then mere look-ups
            behind = np.where(z.take(self.columns, axis=1) > self.thresholds, self._right, self._left)
            begins = np.arange(0, n * n_nodes, n_nodes)
            behind += begins[:, None]
            at, flat = self._roots[:, None] + begins, behind.ravel()
            for _ in range(self._depth):
                at = flat.take(at)
            return at - begins
        at, flat, begins = np.repeat(self._roots[:, None], n, axis=1), z.ravel(), np.arange(0, n * d, d)
        for _ in range(self._depth):
            is_above = flat.take(begins + self.columns.take(at)) > self.thresholds.take(at)
            at = np.where(is_above, self._right.take(at), self._left.take(at))
        return at

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        d = sizes.pop("d")
        found = super().load_state_dict(state, **sizes)
        ends = np.cumsum(self.sizes)
        has_all = sum(self.sizes.tolist()) == found["nodes"]  # numpy's sum could wrap around
        left = np.repeat(ends, self.sizes) - np.arange(len(self.columns)) if has_all else None
        is_tree = left is not None and (np.maximum(self.below, self.above) < left).all()
        inner = np.flatnonzero(self.below)
        behind = np.concatenate([inner + self.below[inner], inner + self.above[inner]])
        if not is_tree or ((self.below == 0) != (self.above == 0)).any() or len(np.unique(behind)) < len(behind):
            raise StateError("'below' and 'above' must lead to nodes of the same tree")
        integers("nodes", below=d)("columns", state["columns"], {})
        integers("nodes", below=found["labels"])("labels", state["labels"], {})
        if (self.shares < 0).any():
            raise StateError("'shares' must not be negative")
        if found["trees"] > _MOST:
            raise StateError(f"'sizes' must be of {_MOST} trees at most; got {found['trees']}")
        self._pack()
        return found


def _is_drawn(serial: Labels, number: Labels | int) -> NDArray[np.bool_]:
    """Returns whether trees are grown on rows, both by their numbers: five in eight, others for every tree."""
    mixed = serial.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = mixed ^ (1 + np.atleast_1d(number)).astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed >> np.uint64(61) < 5)
