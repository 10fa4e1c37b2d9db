"""Banks made of two banks of the same experts: one chooses, its companion learns the same samples.

Who is responsible and what is new is the chooser's matter alone. Who answers what is asked of x, and how a batch is
learned, is what tells such banks apart.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.experts.bank import Bank

__all__ = ["CompositeBank"]


class CompositeBank(Bank):
    """What they share.

    Args:
        chooser: Tells who is responsible and what is new; founds its experts in few steps.
        companion: Has an expert beside each of the chooser's.
    """

    def __init__(self, chooser: Bank, companion: Bank) -> None:
        self._chooser, self._companion = chooser, companion

    @property
    def n_experts(self) -> int:
        """The chooser's, which are ready last."""
        return self._chooser.n_experts

    @property
    def in_training(self) -> bool:
        return self._chooser.in_training or self._companion.in_training

    # By the chooser alone

    @property
    def evidence_device(self) -> torch.device:
        return self._chooser.evidence_device

    @property
    def is_additive(self) -> bool:
        """As the chooser is. What a removed expert's companion alone has learned is lost with it."""
        return self._chooser.is_additive

    def log_joint(self, x: Tensor, y: Tensor | None) -> Tensor:
        return self._chooser.log_joint(x, y)

    def log_joint_new(self, x: Tensor, y: Tensor | None) -> Tensor:
        return self._chooser.log_joint_new(x, y)

    def margin_drift(self) -> Tensor | None:
        return self._chooser.margin_drift()

    def log_leave_one_out(self, x: Tensor, y: Tensor | None) -> Tensor | None:
        return self._chooser.log_leave_one_out(x, y)

    def select(self, x: Tensor, chosen: Tensor) -> Tensor:
        return self._chooser.select(x, chosen)

    # By both

    def check(self, x: Tensor) -> None:
        self._chooser.check(x)
        self._companion.check(x)

    def admit(self, y: Tensor) -> None:
        self._chooser.admit(y)
        self._companion.admit(y)

    def announce(self, x: Tensor) -> None:
        self._chooser.announce(x)
        self._companion.announce(x)

    def prepare(self, x: Tensor) -> None:
        self._chooser.prepare(x)
        self._companion.prepare(x)

    def start_expert(self, x: Tensor, y: Tensor | None) -> None:
        self._chooser.start_expert(x, y)
        self._companion.start_expert(x, y)

    def train_expert(self, max_steps: int) -> bool:
        """The companion's steps count; the chooser is ready at the same time, not before."""
        if not self._companion.train_expert(max_steps):
            return False
        while not self._chooser.train_expert(1):
            pass
        return True

    def training_progress(self) -> float:
        return self._companion.training_progress()

    def remove(self, k: int, into: int) -> None:
        self._chooser.remove(k, into)
        self._companion.remove(k, into)

    @property
    def n_parameters(self) -> int:
        return self._chooser.n_parameters + self._companion.n_parameters

    @property
    def n_numbers_kept(self) -> int:
        return self._chooser.n_numbers_kept + self._companion.n_numbers_kept
