"""Banks made of two banks of the same experts: one routes samples, its companion learns the same samples.

The model that routes best need not be the one that describes best. Gaussians over features learn at once, have an exact
evidence of "new" and tell tasks apart after few samples; networks give the density of x itself and can be sampled from.
The chooser alone decides which expert is responsible and which samples are new. Subclasses decide which of the two
banks answers, and how a batch is learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor

from cndpm.experts.bank import Bank, Evidence, Provisional
from cndpm.experts.chunks import Samples
from cndpm.learner import Footprint
from cndpm.state import Keeps, State, part


class CompositeBank(Bank):
    """Base of banks made of two banks: routes by the chooser, founds and removes experts in both.

    The chooser founds its experts in few steps; the companion has one expert for each of them.
    """

    def __init__(self, chooser: Bank, companion: Bank) -> None:
        self.chooser, self.companion = chooser, companion
        self.is_additive = chooser.is_additive

    @property
    def counts(self) -> Tensor:
        return self.chooser.counts

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
        return 1.0

    def remove(self, k: int, into: int | None) -> None:
        self.chooser.remove(k, into)
        self.companion.remove(k, into)

    def representation(self) -> State:
        return {"chooser": self.chooser.representation(), "companion": self.companion.representation()}

    def adopt(self, representation: State) -> None:
        self.chooser.adopt(representation["chooser"])
        self.companion.adopt(representation["companion"])

    def footprint(self) -> Footprint:
        chooser, companion = self.chooser.footprint(), self.companion.footprint()
        n_parameters = chooser.n_parameters + companion.n_parameters
        n_kept = chooser.n_numbers_kept + companion.n_numbers_kept
        return Footprint(n_parameters, n_kept, n_experts=chooser.n_experts)

    def _extend(self, other: Self) -> None:
        self.companion.extend(other.companion)
        self.chooser.extend(other.chooser)

    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        return self.chooser.explained(levels, sources)

    def affinity(self) -> Tensor | None:
        return self.chooser.affinity()

    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        self.companion.relabel(mapping, n_classes)
        self.chooser.relabel(mapping, n_classes)


class SelectedBank(Keeps, CompositeBank):
    """Routes by one bank, the selector, and answers by another one, the describer."""

    kept: ClassVar = {"selector": part(), "describer": part()}

    def __init__(self, selector: Bank, describer: Bank) -> None:
        super().__init__(selector, describer)
        self.selector, self.describer, self.density_of = selector, describer, describer.density_of

    def open(self, x: Tensor, batch_size: int | None = None, *, start: int = 0) -> Iterator[Samples]:
        of_describer = self.describer.open(x)
        return of_describer if batch_size is None else self.selector.open(x, batch_size, start=start)

    def log_density(self, samples: Samples, *, exact: bool = True) -> Tensor:
        return self.describer.log_density(samples, exact=exact)

    def predictive(self, samples: Samples, *, exact: bool = True) -> Tensor:
        return self.describer.predictive(samples, exact=exact)

    def provisional(self, samples: Samples, y: Tensor | None, *, exact: bool = True) -> Provisional:
        return self.describer.provisional(samples, y, exact=exact)

    def learn(self, samples: Samples, y: Tensor | None, responsibilities: Tensor, *, counted: bool = True) -> None:
        self.selector.learn(samples, y, responsibilities, counted=counted)
        self.describer.learn(samples, y, responsibilities, counted=counted)

    def found(self, samples: Samples, y: Tensor | None) -> None:
        self.selector.found(samples, y)
        self.describer.found(samples, y)

    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        return self.describer.sample(k, n, generator)
