"""Which component stands for which label in which expert."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["LabelTable", "one_hot_weights"]

Labels = NDArray[np.int64]


class LabelTable:
    """A growing table of component indices, (K, C), -1 where an expert has never seen a label.

    Labels are class indices from 0 on; unlabelled experts use label 0 throughout. The table and all that is asked of it
    live on the host.
    """

    def __init__(self, n_classes: int) -> None:
        self.table = torch.full((0, max(1, n_classes)), -1, dtype=torch.long)
        self._index: tuple[Tensor, Tensor] | None = None
        self._compact: Tensor | None = None
        self._n_labels: int | None = None

    @property
    def n_experts(self) -> int:
        """K."""
        return self.table.shape[0]

    @property
    def n_classes(self) -> int:
        """C: labels there is room for."""
        return self.table.shape[1]

    @property
    def n_components(self) -> int:
        """J."""
        return len(self.owners())

    def add_expert(self) -> None:
        """Appends an expert that has seen nothing."""
        self._forget()
        self.table = torch.cat([self.table, self.table.new_full((1, self.n_classes), -1)])

    def reserve(self, y: Labels) -> None:
        """Makes room for the labels y."""
        if y.size and y.min() < 0:
            raise ValueError(f"labels are class indices from 0 on; got {y.min()}")
        missing = (int(y.max()) + 1 if y.size else 0) - self.n_classes
        if missing > 0:
            self.table = torch.cat([self.table, self.table.new_full((self.n_experts, missing), -1)], dim=1)

    def components(self, y: Labels) -> Labels:
        """Component of label y in every expert, (B, K), -1 where there is none; labels beyond the table have none."""
        inside = y < self.n_classes
        if inside.all():
            return self.table.numpy()[:, y].T
        found: Labels = self.table.numpy()[:, np.where(inside, y, 0)].T
        return np.where(inside[:, None], found, -1)

    def create(self, y: Labels, missing: NDArray[np.bool_]) -> int:
        """Adds components for labels y (B,) in experts where they are `missing`, (B, K); returns how many are new."""
        if not missing.any():
            return 0
        sample, expert = np.nonzero(missing)
        pairs = np.unique(np.stack([expert, y[sample]], axis=1), axis=0)
        first = self.n_components
        self._forget()
        self.table.numpy()[pairs[:, 0], pairs[:, 1]] = np.arange(first, first + len(pairs))
        return len(pairs)

    def owners(self) -> Tensor:
        """The expert of each component, (J,)."""
        return self._owners_and_labels()[0]

    def labels(self) -> Tensor:
        """The label of each component, (J,)."""
        return self._owners_and_labels()[1]

    def by_expert(self) -> Tensor:
        """The components of each expert without the gaps, (K, most labels of one expert), -1 behind them."""
        if self._compact is None:
            width = max(1, int((self.table >= 0).sum(dim=1).max())) if self.n_experts else 1
            self._compact = self.table.sort(dim=1, descending=True).values[:, :width]
        return self._compact

    @property
    def n_labels(self) -> int:
        """Labels that some expert has seen."""
        if self._n_labels is None:
            self._n_labels = len(set(self.labels().tolist()))
        return self._n_labels

    def replace(self, table: Tensor) -> None:
        """Takes another table, (K, C)."""
        self._forget()
        self.table = table

    def _forget(self) -> None:
        self._index = self._compact = self._n_labels = None

    def _owners_and_labels(self) -> tuple[Tensor, Tensor]:
        """Both, found once per change of the table."""
        if self._index is None:
            expert, label = torch.nonzero(self.table >= 0, as_tuple=True)
            order = torch.argsort(self.table[expert, label])
            self._index = expert[order], label[order]
        return self._index

    def merge_expert(self, k: int, into: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Removes expert k in favour of `into`.

        Returns:
            Pairs of components (source, target) to be added up, and the old indices of those that stay, in the order
            of their new indices.
        """
        pairs = []
        for label in torch.nonzero(self.table[k] >= 0)[:, 0].tolist():
            source, target = int(self.table[k, label]), int(self.table[into, label])
            if target >= 0:
                pairs.append((source, target))
            else:
                self.table[into, label] = source
        self.table = torch.cat([self.table[:k], self.table[k + 1 :]])
        keep = torch.sort(self.table[self.table >= 0]).values
        renumber = self.table.new_full((int(keep.max()) + 2,), -1)
        renumber[keep] = torch.arange(len(keep))
        self.replace(renumber[self.table])
        return pairs, [int(j) for j in keep.tolist()]


def one_hot_weights(components: Labels, weights: NDArray[np.float64], n_components: int) -> NDArray[np.float64]:
    """Weights (B, J) from component indices (B, K), -1 for none and otherwise different, and weights (B, K)."""
    result = np.zeros((len(weights), n_components + 1))
    result[np.arange(len(weights))[:, None], components] = weights
    return result[:, :-1]
