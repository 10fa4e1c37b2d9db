"""Two models in every expert: one to select, one to describe.

What tells best whose a sample is need not be what describes it best. Gaussians over features learn at once, have an
exact evidence of "new" and tell tasks apart over few samples; networks give the density of x itself and can be drawn
from. Here both learn the same samples, and each answers what it is good at.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.experts.bank import Bank, Provisional
from cndpm.state import State

__all__ = ["SelectedBank"]


class SelectedBank(Bank):
    """Experts that one bank chooses and another one models.

    Args:
        selector: Tells who is responsible and what is new; founds its experts in few steps.
        describer: Answers what is asked of x: density, predictions, samples.
    """

    def __init__(self, selector: Bank, describer: Bank) -> None:
        self.selector, self.describer = selector, describer

    @property
    def n_experts(self) -> int:
        return self.describer.n_experts

    @property
    def in_training(self) -> bool:
        return self.describer.in_training or self.selector.in_training

    @property
    def evidence_device(self) -> torch.device:
        return self.selector.evidence_device

    @property
    def is_additive(self) -> bool:
        """As the selector is. What a removed expert's network alone has learned is lost with it."""
        return self.selector.is_additive

    def log_joint(self, x: Tensor, y: Tensor | None) -> Tensor:
        """The selector's, (B, K): what routing sees is not a density of x."""
        return self.selector.log_joint(x, y)

    def log_joint_new(self, x: Tensor, y: Tensor | None) -> Tensor:
        return self.selector.log_joint_new(x, y)

    def margin_drift(self) -> Tensor | None:
        return self.selector.margin_drift()

    def log_leave_one_out(self, x: Tensor, y: Tensor | None) -> Tensor | None:
        return self.selector.log_leave_one_out(x, y)

    def log_density(self, x: Tensor) -> Tensor:
        return self.describer.log_density(x)

    @property
    def describes_x(self) -> bool:
        return self.describer.describes_x

    def predictive(self, x: Tensor) -> Tensor:
        return self.describer.predictive(x)

    def check(self, x: Tensor) -> None:
        self.selector.check(x)
        self.describer.check(x)

    def admit(self, y: Tensor) -> None:
        self.selector.admit(y)
        self.describer.admit(y)

    def announce(self, x: Tensor) -> None:
        self.selector.announce(x)
        self.describer.announce(x)

    def select(self, x: Tensor, chosen: Tensor) -> Tensor:
        return self.selector.select(x, chosen)

    def prepare(self, x: Tensor) -> None:
        self.selector.prepare(x)
        self.describer.prepare(x)

    def provisional(self, x: Tensor, y: Tensor | None) -> Provisional:
        return self.describer.provisional(x, y)

    def learn(self, x: Tensor, y: Tensor | None, responsibilities: Tensor) -> None:
        self.selector.learn(x, y, responsibilities)
        self.describer.learn(x, y, responsibilities.to(self.describer.evidence_device))

    def start_expert(self, x: Tensor, y: Tensor | None) -> None:
        self.describer.start_expert(x, y)
        self.selector.start_expert(x, y)

    def train_expert(self, max_steps: int) -> bool:
        """The describer's steps count; the selector is ready at the same time, not before."""
        if not self.describer.train_expert(max_steps):
            return False
        while not self.selector.train_expert(max_steps):
            pass
        return True

    def training_progress(self) -> float:
        return self.describer.training_progress()

    def remove(self, k: int, into: int) -> None:
        self.selector.remove(k, into)
        self.describer.remove(k, into)

    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        return self.describer.sample(k, n, generator)

    @property
    def n_parameters(self) -> int:
        return self.selector.n_parameters + self.describer.n_parameters

    @property
    def n_numbers_kept(self) -> int:
        return self.selector.n_numbers_kept + self.describer.n_numbers_kept

    def state_dict(self) -> State:
        return {"selector": self.selector.state_dict(), "describer": self.describer.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self.selector.load_state_dict(state["selector"])
        self.describer.load_state_dict(state["describer"])
