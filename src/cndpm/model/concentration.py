"""Who decides what is new: a concentration given by the user, or one that the model sets by itself."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from cndpm.mixture import is_new, log_responsibilities
from cndpm.state import State

__all__ = ["Concentration", "FixedConcentration"]


class Concentration(Protocol):
    """The verdict on a batch, and what it needs to know of the experts."""

    def judge(self, log_known: Tensor, log_new: Tensor, labels: Tensor | None = None) -> Tensor:
        """Which samples are new, (B,), from log N_k + log p(x, y | k), (B, K), and log p(x, y | new), (B,).

        `labels` are class indices (B,), where there are any.
        """

    def is_still_new(self, labels: Tensor) -> Tensor:
        """Whether the latest samples of each label given, (B,), are new: (B,) bool."""

    def add_expert(self, held_out_margins: Tensor, labels: Tensor | None = None) -> None:
        """Takes note of an expert and of how it rates samples that it has not learned, (H,), with labels (H,)."""

    def follow(self, drift: Tensor) -> None:
        """Margins of the experts' samples have moved by so much, (K,), NaN where it is not known."""

    def remove_expert(self, k: int) -> None:
        """Forgets expert k."""

    def state_dict(self) -> State:
        """What was noted."""

    def load_state_dict(self, state: State) -> None:
        """Restores it."""


class FixedConcentration:
    """The paper's: one number α, set by hand.

    Args:
        log_alpha: Any finite number.
        threshold: SVA's ε, or None for the best hypothesis.
    """

    def __init__(self, log_alpha: float, threshold: float | None) -> None:
        self.log_alpha = log_alpha
        self.threshold = threshold

    def judge(self, log_known: Tensor, log_new: Tensor, labels: Tensor | None = None) -> Tensor:
        return is_new(log_responsibilities(log_known, log_new, self.log_alpha), threshold=self.threshold)

    def is_still_new(self, labels: Tensor) -> Tensor:
        return torch.ones_like(labels, dtype=torch.bool)

    def add_expert(self, held_out_margins: Tensor, labels: Tensor | None = None) -> None:
        pass

    def follow(self, drift: Tensor) -> None:
        pass

    def remove_expert(self, k: int) -> None:
        pass

    def state_dict(self) -> State:
        return {}

    def load_state_dict(self, state: State) -> None:
        pass
