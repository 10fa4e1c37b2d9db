"""Merging of networks: they are no sums, so those of all banks are put side by side, for pruning to choose among."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cndpm.experts.bank import Merging

if TYPE_CHECKING:
    from cndpm.experts.neural.neural_bank import NeuralBank


class NeuralMerging(Merging):
    """Puts networks side by side."""

    _bank: NeuralBank

    def _extend(self, other: NeuralBank) -> None:
        if self._bank.sharing and len(other.counts) and len(self._bank.counts):
            raise ValueError(
                "networks with lateral connections look at all that came before them, so those of two models cannot be "
                "put side by side; learn with sharing=False to merge later"
            )
        self._bank.take_in(other)

    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        return torch.eye(len(self._bank.counts), dtype=torch.float64)

    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        if list(mapping) != list(range(len(mapping))):
            raise ValueError(
                "networks keep their classes in order, and these models met them in different orders; name them all in "
                "the same order when learning begins: partial_fit(X, y, classes=...)"
            )
        self._bank.admit(n_classes)
