"""Features and targets brought to one scale, by statistics taken once from the first memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.state import State, expect, tensor


@dataclass(frozen=True)
class Scaling:
    """x' = (x - shift) / scale, element by element; the same for every expert, so responsibilities do not change."""

    shift: Tensor  # shape of one sample
    scale: Tensor  # shape of one sample; 1 where a feature was constant

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
        """Restores a scaling."""
        expect(state, {"shift": tensor(*state["scale"].shape, dtype=torch.float32)})
        return cls(state["shift"].to(device, copy=True), state["scale"].to(device, copy=True))


class Scalings:
    """Brings inputs and real-valued targets to one scale, that of the first memory, where that is wanted."""

    def __init__(self, *, wanted: bool, device: torch.device) -> None:
        self._wanted, self._device = wanted, device
        self._of_x: Scaling | None = None
        self._of_y: Scaling | None = None

    def fit(self, x: Tensor, y: Tensor | None) -> None:
        """Takes the scales of the first memory; later calls change nothing. Class labels and None have no scale."""
        if self._wanted and self._of_x is None:
            self._of_y = Scaling.fit(y.to(self._device)) if y is not None and y.is_floating_point() else None
            self._of_x = Scaling.fit(x)

    def of_inputs(self, memory: Tensor) -> Scaling | None:
        """Returns the scaling of x: fixed when the first expert is founded, before that the memory's, (M, ...)."""
        if not self._wanted:
            return None
        return Scaling.fit(memory) if self._of_x is None else self._of_x

    def inputs(self, samples: Samples) -> Samples:
        """Returns samples as the networks see them, without their chunk: networks change with every step."""
        of_x = self._of_x
        if of_x is None:
            return samples.alone()
        scaled: Samples = samples.alone().derive("scaled", of_x, lambda chunk: Samples(of_x.apply(chunk.x)))
        return scaled

    def targets(self, y: Tensor | None) -> Tensor | None:
        """Returns targets as the networks learn them, on their device."""
        if y is None:
            return None
        y = y.to(self._device)
        return y if self._of_y is None else self._of_y.apply(y)

    def log_density(self, of_scaled: Tensor) -> Tensor:
        """Returns log densities of x, given those of scaled inputs."""
        return of_scaled if self._of_x is None else of_scaled.double() - self._of_x.log_volume

    def undo(self, x: Tensor) -> Tensor:
        """Brings scaled inputs (n, ...) back."""
        return x if self._of_x is None else self._of_x.undo(x)

    def predictive(self, scaled: Tensor) -> Tensor:
        """Returns moments (..., 2, n_outputs) in the targets' own units; log-probabilities as they are."""
        if self._of_y is None:
            return scaled
        mean, variance = scaled.unbind(dim=-2)
        return torch.stack([self._of_y.undo(mean), variance * self._of_y.scale.square()], dim=-2)

    def state_dict(self) -> list[State | None] | None:
        """Returns both scalings; None before the first memory."""
        if self._of_x is None:
            return None
        return [self._of_x.state_dict(), None if self._of_y is None else self._of_y.state_dict()]

    def load_state_dict(self, state: list[State | None] | None) -> None:
        of_x, of_y = state or (None, None)
        self._of_x = None if of_x is None else Scaling.from_state(of_x, self._device)
        self._of_y = None if of_y is None else Scaling.from_state(of_y, self._device)
