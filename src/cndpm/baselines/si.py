"""Synaptic intelligence: importance is what a weight contributed to lowering the loss, integrated along its path."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.components import NetworkSettings, TensorSlots
from cndpm.baselines.shared.composed import ClassifierLearner
from cndpm.baselines.shared.penalty import QuadraticPenalty
from cndpm.learner import TaskBasedLearner


class PathIntegral(TensorSlots):
    r"""Sums each weight's share in the fall of the loss since the task began.

    .. math:: \omega_i = -\int g_i \, d\theta_i \approx -\sum_{steps} g_i \, \Delta\theta_i, \qquad
        \Omega_i = \max\left(0, \frac{\omega_i}{(\theta_i - \theta_i^{start})^2 + \xi}\right)
    """

    def __init__(self, damping: float, device: torch.device) -> None:
        super().__init__(device)
        self.damping = damping

    def begin(self, weights: Tensor) -> None:
        """Starts the path of a task at these weights, (n_parameters,)."""
        self.values = {"start": weights.clone(), "contribution": torch.zeros_like(weights)}

    @property
    def contribution(self) -> Tensor:
        """omega, (n_parameters,)."""
        return self.values["contribution"]

    def advance(self, gradient: Tensor, movement: Tensor) -> None:
        """Adds one step: the loss's gradient before it and the change of the weights, (n_parameters,) each."""
        self.contribution.sub_(gradient * movement)

    def importance(self, weights: Tensor) -> Tensor:
        """Returns Omega at the task's last weights, (n_parameters,)."""
        moved = weights - self.values["start"]
        return (self.contribution / (moved.square() + self.damping)).clamp_min(0)


class SI(ClassifierLearner, TaskBasedLearner):
    r"""Synaptic intelligence (Zenke, Poole and Ganguli 2017).

    .. math:: \mathcal{L}(\theta) = \mathcal{L}_t(\theta) + c \sum_i \Omega_i (\theta_i - \theta^*_i)^2

    with the importances of all tasks summed and the anchor at the last task's end; see :class:`PathIntegral`.

    Departures: negative importances, which noise makes, count as zero; the optimiser keeps its moments across tasks.
    """

    class Settings(NetworkSettings):
        """The penalty's weight and the damping."""

        strength: float = Field(1.0, ge=0, description="weight of the penalty, c")
        damping: float = Field(0.1, gt=0, description="xi, added to the squared path length")
        learning_rate: float = Field(1e-3, gt=0, le=10, description="step size")

    settings: Settings

    def _make(self) -> None:
        super()._make()
        self.penalty = QuadraticPenalty(2 * self.settings.strength, self.device)
        self.path = PathIntegral(self.settings.damping, self.device)
        self.path.begin(self.trainer.weights())
        self.parts |= {"penalty": self.penalty, "path": self.path}

    def begin_task(self, task: int) -> None:
        self.path.begin(self.trainer.weights())

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        before = self.trainer.weights()
        gradient = self.trainer.gradient(F.cross_entropy(self.network.train()(x), y))
        self.trainer.step_along(gradient + self.penalty.gradient(before))
        self.path.advance(gradient, self.trainer.weights() - before)

    def end_task(self) -> None:
        weights = self.trainer.weights()
        self.penalty.accumulate(self.path.importance(weights), weights)
