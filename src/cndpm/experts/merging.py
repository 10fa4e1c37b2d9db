"""The contract of merging: experts of banks that learned different streams with one representation become one bank's.

It stands apart from the contract of a bank because Algorithm 1 needs none of it; a bank offers it as `Bank.merging`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from cndpm.experts.bank import Bank


class Merging(ABC):
    """Puts the experts of one bank into another, tells which are the same, and makes one of them."""

    @abstractmethod
    def extend(self, other: Bank) -> None:
        """Appends the experts of a bank with the same representation behind its own; the other need not be kept.

        Call :meth:`cndpm.experts.bank.Bank.margin_drift` when all are there: what the experts share is renewed then.
        """

    @abstractmethod
    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        """Returns the share of the samples of expert b that expert a would take for its own, [a, b], (K, K).

        It takes those of a margin above its level (K,). Of the experts of one mixture, told by `sources` (K,), only the
        best takes a sample. Networks do not tell without samples: every expert explains its own alone.
        """

    @abstractmethod
    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        """Makes one expert of every group, ascending within; the groups, together all experts, stay in order."""

    @abstractmethod
    def affinity(self) -> Tensor | None:
        """Returns how alike experts are, by what they have learned, (K, K), the higher the more; None for networks."""

    @abstractmethod
    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        """Gives class c the index mapping[c], all different, among `n_classes` from now on."""
