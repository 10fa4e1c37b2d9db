"""Features and targets brought to one scale, by statistics taken once from the first memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cndpm.state import State, expect, tensor

__all__ = ["Scaling"]


@dataclass(frozen=True)
class Scaling:
    """x' = (x - shift) / scale, element by element; the same for every expert, so responsibilities do not change.

    Attributes:
        shift: Shape of one sample.
        scale: Shape of one sample; 1 where a feature was constant.

    Example:
        >>> scaling = Scaling.fit(torch.tensor([[1.0], [3.0]]))
        >>> scaling.apply(torch.tensor([[4.0]]))
        tensor([[2.]])
    """

    shift: Tensor
    scale: Tensor

    @classmethod
    def fit(cls, x: Tensor) -> Scaling:
        """Takes mean and standard deviation of samples (n, ...)."""
        shift = x.mean(dim=0)
        scale = x.std(dim=0, correction=0)
        return cls(shift, torch.where(scale > 1e-6 * (1 + shift.abs()), scale, torch.ones_like(scale)))

    def apply(self, x: Tensor) -> Tensor:
        """Brings samples (n, ...) to the common scale."""
        return (x - self.shift) / self.scale

    def undo(self, x: Tensor) -> Tensor:
        """Brings samples (n, ...) back to the original scale."""
        return x * self.scale + self.shift

    @property
    def log_volume(self) -> Tensor:
        """log |dx / dx'|, by which a log density on the common scale exceeds the one on the original scale."""
        return self.scale.double().log().sum()

    def state_dict(self) -> State:
        """Returns shift and scale."""
        return {"shift": self.shift.clone(), "scale": self.scale.clone()}

    @classmethod
    def from_state(cls, state: State, device: torch.device) -> Scaling:
        """Restores a scaling.

        Args:
            state: A result of :meth:`state_dict`.
            device: Where the scaling shall live.
        """
        expect(state, {"shift": tensor(*state["scale"].shape, dtype=torch.float32)})
        return cls(state["shift"].to(device, copy=True), state["scale"].to(device, copy=True))
