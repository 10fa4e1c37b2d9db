"""Banks made of two banks of the same experts: one routes samples, its companion learns the same samples.

The chooser alone decides which expert is responsible and which samples are new. Subclasses decide which of the two
banks answers, and how a batch is learned.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from torch import Tensor

from cndpm.experts.bank import Bank, Evidence
from cndpm.experts.chunks import Samples
from cndpm.experts.merging import Merging
from cndpm.learner import Footprint
from cndpm.state import State


class CompositeBank(Bank):
    """Base of banks made of two banks: routes by the chooser, founds and removes experts in both.

    The chooser founds its experts in few steps; the companion has one expert for each of them.
    """

    def __init__(self, chooser: Bank, companion: Bank) -> None:
        self.chooser, self.companion = chooser, companion

    @property
    def counts(self) -> Tensor:
        return self.chooser.counts

    @property
    def is_additive(self) -> bool:
        return self.chooser.is_additive

    @property
    def merging(self) -> CompositeMerging:
        return CompositeMerging(self)

    def admit(self, n_classes: int) -> None:
        self.chooser.admit(n_classes)
        self.companion.admit(n_classes)

    def evidence(self, samples: Samples, y: Tensor | None) -> Evidence:
        return self.chooser.evidence(samples, y)

    def log_leave_one_out(self, samples: Samples, y: Tensor | None) -> Tensor | None:
        return self.chooser.log_leave_one_out(samples, y)

    def margin_drift(self) -> Tensor | None:
        return self.chooser.margin_drift()

    def train(self, max_steps: int) -> float:
        done = self.companion.train(max_steps)
        if done < 1:
            return done
        if max_steps < 1:
            return self.chooser.train(0)
        while self.chooser.train(1) < 1:
            pass
        self._welcome(len(self.chooser.counts))
        return 1.0

    def remove(self, k: int, into: int | None) -> None:
        self.chooser.remove(k, into)
        self.companion.remove(k, into)
        self._forget(k, into)

    def representation(self) -> State:
        return {"chooser": self.chooser.representation(), "companion": self.companion.representation()}

    def adopt(self, representation: State) -> None:
        self.chooser.adopt(representation["chooser"])
        self.companion.adopt(representation["companion"])

    def footprint(self) -> Footprint:
        chooser, companion, own = self.chooser.footprint(), self.companion.footprint(), self._own_footprint()
        return Footprint(
            chooser.n_parameters + companion.n_parameters,
            chooser.n_numbers_kept + companion.n_numbers_kept + own.n_numbers_kept,
            memory_samples=own.memory_samples,
            memory_bytes=own.memory_bytes,
            n_experts=chooser.n_experts,
        )

    @abstractmethod
    def _welcome(self, n_experts: int) -> None:
        """Notes that there are `n_experts` experts now."""

    @abstractmethod
    def _forget(self, k: int, into: int | None) -> None:
        """Notes that expert k was removed in favour of `into`."""

    @abstractmethod
    def extend_own(self, other: Self) -> None:
        """Appends what the other bank keeps beside its two banks."""

    @abstractmethod
    def _own_footprint(self) -> Footprint:
        """Counts the numbers kept beside the two banks."""


class CompositeMerging(Merging):
    """Merges both banks; the chooser tells which experts are the same."""

    def __init__(self, bank: CompositeBank) -> None:
        self._bank = bank

    def extend(self, other: Bank) -> None:
        bank = self._bank
        if not isinstance(other, type(bank)):
            raise TypeError(f"a {type(bank).__name__} takes experts of its own kind; got a {type(other).__name__}")
        bank.companion.merging.extend(other.companion)
        bank.chooser.merging.extend(other.chooser)
        bank.extend_own(other)

    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        return self._bank.chooser.merging.explained(levels, sources)

    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        for k, into in sorted(((k, group[0]) for group in groups for k in group[1:]), reverse=True):
            self._bank.remove(k, into=into)

    def affinity(self) -> Tensor | None:
        return self._bank.chooser.merging.affinity()

    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        self._bank.companion.merging.relabel(mapping, n_classes)
        self._bank.chooser.merging.relabel(mapping, n_classes)
