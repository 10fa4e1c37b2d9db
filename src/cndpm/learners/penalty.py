r"""A quadratic penalty on leaving the weights that earlier tasks settled on.

.. math:: \frac{c}{2} \sum_t \sum_i F_{t,i} (\theta_i - \theta^*_{t,i})^2

EWC, online EWC, SI and MAS differ in the importances :math:`F` and in whether the anchors :math:`\theta^*_t` of all
tasks or only the last one's count. Its gradient needs two vectors however many tasks there were:
:math:`c\,(P\theta - s)` with :math:`P = \sum_t F_t` and :math:`s = \sum_t F_t \theta^*_t`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.learners.learner import Footprint
from cndpm.learners.parts import TensorSlots
from cndpm.state import State

__all__ = ["QuadraticPenalty"]


class QuadraticPenalty:
    """The penalty's two vectors, both empty before the first task has ended.

    Args:
        strength: c.
        device: Where the weights live.
    """

    def __init__(self, strength: float, device: torch.device) -> None:
        self.strength = strength
        self._slots = TensorSlots(device)

    @property
    def importance(self) -> Tensor | None:
        """P, the importances of all tasks together, (n_parameters,); None before the first task has ended."""
        return self._slots.values.get("importance")

    def gradient(self, weights: Tensor) -> Tensor:
        """The penalty's gradient at `weights`, (n_parameters,)."""
        if self.importance is None:
            return torch.zeros_like(weights)
        return self.strength * (self.importance * weights - self._slots.values["pull"])

    def add(self, importance: Tensor, anchor: Tensor) -> None:
        """One more task, with an anchor of its own beside the earlier ones."""
        if self.importance is None:
            self.move(importance, anchor)
        else:
            pull = self._slots.values["pull"] + importance * anchor
            self._slots.values = {"importance": self.importance + importance, "pull": pull}

    def move(self, importance: Tensor, anchor: Tensor) -> None:
        """One penalty in place of all earlier ones."""
        self._slots.values = {"importance": importance.clone(), "pull": importance * anchor}

    def footprint(self) -> Footprint:
        """Both vectors, as statistics."""
        return self._slots.footprint()

    def state_dict(self) -> State:
        """Both vectors."""
        return self._slots.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Restores both vectors, or their absence."""
        self._slots.load_state_dict(state)
