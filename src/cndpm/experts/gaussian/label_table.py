"""The component of every label in every expert."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class LabelTable:
    """A growing table of component indices, (K, C), -1 where an expert has never seen a label.

    Labels are class indices from 0 on; unlabelled experts use label 0 throughout. Everything lives on the host and is
    read as attributes, because a batch asks for several of them: the expert (`owners`) and label (`labels`) of each of
    J components, the components of each expert without the gaps (`by_expert`), (K, most labels of one expert), -1
    behind them, from the latest to the first, and `n_labels`, the labels that some expert has seen.
    """

    def __init__(self, n_classes: int) -> None:
        self.replace(np.full((0, max(1, n_classes)), -1, dtype=np.int64))

    def replace(self, table: Indices) -> None:
        """Takes another table, (K, C)."""
        self.table = table
        self.n_experts, self.n_classes = table.shape
        expert, label = np.nonzero(table >= 0)
        order = np.argsort(table[expert, label])
        self.owners, self.labels = expert[order], label[order]
        self.n_components = len(order)
        self._by_label = np.argsort(self.labels, kind="stable")
        self._sorted_labels = self.labels[self._by_label]
        self.n_labels = len(np.unique(self._sorted_labels))
        self.by_expert = _gathered(self.owners, self.n_experts)

    def components_of(self, labels: Indices) -> Indices:
        """Returns the components of some labels, repeated or unknown ones too, in all experts, ascending, (S,)."""
        wanted = np.unique(labels)
        starts = np.searchsorted(self._sorted_labels, wanted, side="left")
        stops = np.searchsorted(self._sorted_labels, wanted, side="right")
        found = [self._by_label[start:stop] for start, stop in zip(starts, stops, strict=True)]
        return np.sort(np.concatenate(found))

    def add_expert(self) -> None:
        """Appends an expert that has seen nothing."""
        self.replace(np.concatenate([self.table, np.full((1, self.n_classes), -1)]))

    def reserve(self, n_classes: int) -> None:
        """Makes room for labels below `n_classes`."""
        if n_classes > self.n_classes:
            self.table = np.pad(self.table, ((0, 0), (0, n_classes - self.n_classes)), constant_values=-1)
            self.n_classes = n_classes

    def create(self, y: Indices, missing: NDArray[np.bool_]) -> int:
        """Adds components for labels (B,) in experts where they are missing, (B, K); returns the number of new ones."""
        sample, expert = np.nonzero(missing)
        pairs = np.unique(np.stack([expert, y[sample]], axis=1), axis=0)
        table, first = self.table.copy(), self.n_components
        table[pairs[:, 0], pairs[:, 1]] = np.arange(first, first + len(pairs))
        self.replace(table)
        return len(pairs)

    def unite(self, groups: Sequence[Sequence[int]]) -> tuple[list[tuple[int, int]], list[int]]:
        """Makes one expert of every group, in the order of the groups, which together are all.

        Returns:
            Pairs of components (source, target) to be added up, and the old indices of the components that stay, in
            the order of their new indices.
        """
        table, pairs = np.full((len(groups), self.n_classes), -1, dtype=np.int64), []
        for row, group in zip(table, groups, strict=True):
            for k in group:
                both = (row >= 0) & (self.table[k] >= 0)
                pairs += list(zip(self.table[k][both].tolist(), row[both].tolist(), strict=True))
                row[row < 0] = self.table[k][row < 0]
        keep = np.sort(table[table >= 0])
        renumber = np.full(self.n_components + 1, -1)
        renumber[keep] = np.arange(len(keep))
        self.replace(renumber[table])
        return pairs, keep.tolist()


def _gathered(owners: Indices, n_experts: int) -> Indices:
    """Returns the components of each expert, from the latest to the first, (K, most of one expert), -1 behind them."""
    sizes = np.bincount(owners, minlength=n_experts)
    gathered = np.full((n_experts, max(1, int(sizes.max(initial=0)))), -1, dtype=np.int64)
    latest_first = np.lexsort((-np.arange(len(owners)), owners))
    places = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    gathered[owners[latest_first], places] = latest_first
    return gathered
