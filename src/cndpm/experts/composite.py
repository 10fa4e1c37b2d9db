"""Banks made of two banks of the same experts: one chooses, its companion learns the same samples.

Who is responsible and what is new is the chooser's matter alone. Who answers what is asked of x, and how a batch is
learned, is what tells such banks apart.
"""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from cndpm.experts.bank import Bank, Evidence
from cndpm.experts.samples import Samples
from cndpm.learner import Footprint

__all__ = ["CompositeBank"]


class CompositeBank(Bank):
    """What such banks share.

    Args:
        chooser: Tells who is responsible and what is new; founds its experts in few steps.
        companion: Has an expert beside each of the chooser's.
    """

    def __init__(self, chooser: Bank, companion: Bank) -> None:
        self._chooser, self._companion = chooser, companion

    @property
    def counts(self) -> Tensor:
        """The chooser's, which are ready last."""
        return self._chooser.counts

    @property
    def is_additive(self) -> bool:
        """Whether the chooser is."""
        return self._chooser.is_additive

    def admit(self, n_classes: int) -> None:
        self._chooser.admit(n_classes)
        self._companion.admit(n_classes)

    def evidence(self, samples: Samples, y: Tensor | None) -> Evidence:
        return self._chooser.evidence(samples, y)

    def log_leave_one_out(self, samples: Samples, y: Tensor | None) -> Tensor | None:
        return self._chooser.log_leave_one_out(samples, y)

    def margin_drift(self) -> Tensor | None:
        return self._chooser.margin_drift()

    def train(self, max_steps: int) -> float:
        """Counts the companion's steps; the chooser is ready at the same time, not before."""
        done = self._companion.train(max_steps)
        if done < 1:
            return done
        if max_steps < 1:
            return self._chooser.train(0)
        while self._chooser.train(1) < 1:
            pass
        self._welcome(len(self._chooser.counts))
        return 1.0

    def remove(self, k: int, into: int | None) -> None:
        """Removes expert k from both; what its companion alone has learned is lost with it."""
        self._chooser.remove(k, into)
        self._companion.remove(k, into)
        self._forget(k, into)

    def footprint(self) -> Footprint:
        chooser, companion, own = self._chooser.footprint(), self._companion.footprint(), self._own_footprint()
        return Footprint(
            chooser.n_parameters + companion.n_parameters,
            chooser.n_numbers_kept + companion.n_numbers_kept + own.n_numbers_kept,
            memory_samples=own.memory_samples,
            memory_bytes=own.memory_bytes,
            n_experts=chooser.n_experts,
        )

    @abstractmethod
    def _welcome(self, n_experts: int) -> None:
        """Takes note that there are so many experts now."""

    @abstractmethod
    def _forget(self, k: int, into: int | None) -> None:
        """Takes note that expert k goes in favour of `into`."""

    @abstractmethod
    def _own_footprint(self) -> Footprint:
        """Counts what is kept beside the two banks."""
