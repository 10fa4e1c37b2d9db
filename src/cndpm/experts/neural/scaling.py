"""Features and targets brought to one scale, by statistics taken once from the first memory."""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.experts.features import IdentityFeatures
from cndpm.state import State, copied


class Scalings:
    """Brings inputs and real-valued targets to one scale, that of the first memory, where that is wanted.

    The scale is the same for every expert, so responsibilities do not change.
    """

    def __init__(self, *, wanted: bool, device: torch.device) -> None:
        self._wanted, self._device = wanted, device
        self._of_x, self._of_y = IdentityFeatures(), IdentityFeatures()

    def fit(self, x: Tensor, y: Tensor | None) -> None:
        """Takes the scales of the first memory; later calls change nothing. Class labels and None have no scale."""
        if self._wanted and not self._of_x.fitted:
            self._of_x = _fitted(x)
            if y is not None and y.is_floating_point():
                self._of_y = _fitted(y.to(self._device))

    def of_inputs(self, memory: Tensor) -> IdentityFeatures | None:
        """Returns the scaling of x: fixed when the first expert is founded, before that the memory's, (M, ...)."""
        if not self._wanted:
            return None
        return self._of_x if self._of_x.fitted else _fitted(memory)

    def inputs(self, samples: Samples) -> Samples:
        """Returns samples as the networks see them, without their chunk: networks change with every step."""
        of_x = self._of_x
        if not of_x.fitted:
            return samples.alone()
        return samples.alone().derive("scaled", of_x, lambda chunk: Samples(of_x(chunk.x).view_as(chunk.x)))

    def targets(self, y: Tensor | None) -> Tensor | None:
        """Returns targets as the networks learn them, on their device."""
        if y is None:
            return None
        y = y.to(self._device)
        return self._of_y(y) if self._of_y.fitted else y

    def log_density(self, of_scaled: Tensor) -> Tensor:
        """Returns log densities of x, given those of scaled inputs."""
        return of_scaled.double() - self._of_x.log_volume if self._of_x.fitted else of_scaled

    def undo(self, x: Tensor) -> Tensor:
        """Brings scaled inputs (n, ...) back."""
        return self._of_x.inverse(x.flatten(1)) if self._of_x.fitted else x

    def predictive(self, scaled: Tensor) -> Tensor:
        """Returns moments (..., 2, n_outputs) in the targets' own units; log-probabilities as they are."""
        if not self._of_y.fitted:
            return scaled
        mean, variance = scaled.unbind(dim=-2)
        shift, scale = self._of_y.shift, self._of_y.scale
        return torch.stack([mean * scale + shift, variance * scale.square()], dim=-2)

    def state_dict(self) -> State:
        """Returns both scalings."""
        return {"x": self._of_x.state_dict(), "y": self._of_y.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self._of_x, self._of_y = IdentityFeatures(), IdentityFeatures()  # what was scaled before is of no use
        self._of_x.load_state_dict(copied(state["x"], self._device))
        self._of_y.load_state_dict(copied(state["y"], self._device))


def _fitted(x: Tensor) -> IdentityFeatures:
    scaling = IdentityFeatures()
    scaling.fit(x, generator=torch.Generator())
    return scaling
