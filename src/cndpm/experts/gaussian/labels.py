"""Which component stands for which label in which expert."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["LabelTable"]


class LabelTable:
    """A growing table of component indices, (K, C), -1 where an expert has never seen a label.

    Labels are class indices from 0 on; unlabelled experts use label 0 throughout. The table and all that is asked of it
    live on the host.
    """

    def __init__(self, n_classes: int) -> None:
        self.table = torch.full((0, max(1, n_classes)), -1, dtype=torch.long)
        self._index: tuple[Tensor, Tensor] | None = None
        self._compact: Tensor | None = None

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

    def reserve(self, y: Tensor) -> None:
        """Makes room for the labels y."""
        if y.numel() and int(y.min()) < 0:
            raise ValueError(f"labels are class indices from 0 on; got {int(y.min())}")
        missing = (int(y.max()) + 1 if y.numel() else 0) - self.n_classes
        if missing > 0:
            self.table = torch.cat([self.table, self.table.new_full((self.n_experts, missing), -1)], dim=1)

    def components(self, y: Tensor) -> Tensor:
        """Component of label y in every expert, (B, K), -1 where there is none; labels beyond the table have none."""
        inside = y < self.n_classes
        found = self.table[:, torch.where(inside, y, 0)].T
        return torch.where(inside[:, None], found, -1)

    def create(self, y: Tensor, wanted: Tensor) -> int:
        """Adds components for labels y (B,) in the experts where `wanted` (B, K); returns how many are new."""
        missing = wanted & (self.components(y) < 0)
        if not bool(missing.any()):
            return 0
        sample, expert = torch.nonzero(missing, as_tuple=True)
        pairs = torch.unique(torch.stack([expert, y[sample]], dim=1), dim=0)
        first = self.n_components
        self._forget()
        self.table[pairs[:, 0], pairs[:, 1]] = torch.arange(first, first + len(pairs))
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
        return len(set(self.labels().tolist()))

    def replace(self, table: Tensor) -> None:
        """Takes another table, (K, C)."""
        self._forget()
        self.table = table

    def _forget(self) -> None:
        self._index = self._compact = None

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
