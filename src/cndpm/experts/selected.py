"""Two models in every expert: one to select, one to describe.

What tells best whose a sample is need not be what describes it best. Gaussians over features learn at once, have an
exact evidence of "new" and tell tasks apart over few samples; networks give the density of x itself and can be drawn
from. Here both learn the same samples, and each answers what it is good at.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.experts.bank import Bank, Provisional
from cndpm.experts.composite import CompositeBank
from cndpm.state import State

__all__ = ["SelectedBank"]


class SelectedBank(CompositeBank):
    """Experts that one bank chooses and another one models.

    Args:
        selector: Tells who is responsible and what is new; founds its experts in few steps.
        describer: Answers what is asked of x: density, predictions, samples.
    """

    def __init__(self, selector: Bank, describer: Bank) -> None:
        super().__init__(selector, describer)
        self.selector, self.describer = selector, describer

    def log_density(self, x: Tensor) -> Tensor:
        return self.describer.log_density(x)

    @property
    def describes_x(self) -> bool:
        return self.describer.describes_x

    def predictive(self, x: Tensor) -> Tensor:
        return self.describer.predictive(x)

    def provisional(self, x: Tensor, y: Tensor | None) -> Provisional:
        return self.describer.provisional(x, y)

    def learn(self, x: Tensor, y: Tensor | None, responsibilities: Tensor) -> None:
        self.selector.learn(x, y, responsibilities)
        self.describer.learn(x, y, responsibilities.to(self.describer.evidence_device))

    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        return self.describer.sample(k, n, generator)

    def state_dict(self) -> State:
        return {"selector": self.selector.state_dict(), "describer": self.describer.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self.selector.load_state_dict(state["selector"])
        self.describer.load_state_dict(state["describer"])
