"""Two models in every expert: one that routes samples, one that describes them.

The model that routes best need not be the one that describes best. Gaussians over features learn at once, have an exact
evidence of "new" and tell tasks apart after few samples; networks give the density of x itself and can be sampled from.
Here both learn the same samples: the first one routes, the second one answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from cndpm.experts.bank import Bank, DensityOf, Provisional
from cndpm.experts.chunks import Samples
from cndpm.experts.composite import CompositeBank
from cndpm.learner import Footprint
from cndpm.state import State


class SelectedBank(CompositeBank):
    """Routes by one bank, the selector, and answers by another one, the describer."""

    def __init__(self, selector: Bank, describer: Bank) -> None:
        super().__init__(selector, describer)
        self.selector, self.describer = selector, describer

    @property
    def density_of(self) -> DensityOf:
        return self.describer.density_of

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

    def _welcome(self, n_experts: int) -> None:
        """Keeps nothing of its own."""

    def _forget(self, k: int, into: int | None) -> None:
        """Keeps nothing of its own."""

    def extend_own(self, other: SelectedBank) -> None:
        """Keeps nothing of its own."""

    def _own_footprint(self) -> Footprint:
        return Footprint(0, 0)

    def describe(self) -> dict[str, Any]:
        return {}

    def state_dict(self) -> State:
        return {"selector": self.selector.state_dict(), "describer": self.describer.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self.selector.load_state_dict(state["selector"])
        self.describer.load_state_dict(state["describer"])
