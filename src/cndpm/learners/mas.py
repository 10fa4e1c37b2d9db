"""Memory-aware synapses: importance is how much the network's answer depends on a weight."""

from __future__ import annotations

from typing import ClassVar, Unpack

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from cndpm.learners.composed import ClassifierLearner, StreamFacts
from cndpm.learners.gradients import mean_over_gradients
from cndpm.learners.learner import TaskBasedLearner
from cndpm.learners.penalty import QuadraticPenalty
from cndpm.learners.replay import ReplayMemory
from cndpm.learners.training import NetworkSettings

__all__ = ["MAS", "output_sensitivity"]


def output_sensitivity(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    r"""How far the squared length of the output moves with each weight, (n_parameters,); labels play no part.

    .. math:: \Omega_i = \frac{1}{N} \sum_n \left| \partial_{\theta_i} \lVert f(x_n; \theta) \rVert_2^2 \right|
    """
    return mean_over_gradients(network, lambda output, _: output.square().sum(), x, y, of=Tensor.abs)


class MAS(ClassifierLearner, TaskBasedLearner):
    r"""Memory-aware synapses (Aljundi et al. 2018).

    .. math:: \mathcal{L}(\theta) = \mathcal{L}_t(\theta) + \lambda \sum_i \Omega_i (\theta_i - \theta^*_i)^2

    with the importances of all tasks summed and the anchor at the last task's end; see :func:`output_sensitivity`.

    Departures: importance is measured on at most `importance_samples` samples of the task that ends, though it needs no
    labels and the authors may use any data.
    """

    class Settings(NetworkSettings):
        """The penalty's weight and the samples that measure importance."""

        strength: float = Field(1.0, ge=0, description="weight of the penalty, lambda")
        importance_samples: int = Field(200, ge=1, description="samples of a task, kept until its end")
        learning_rate: float = Field(1e-3, gt=0, le=10, description="step size")

    summary: ClassVar[str] = "memory-aware synapses: penalty by the answer's sensitivity to each weight"
    settings: Settings

    def __init__(self, settings: Settings, **facts: Unpack[StreamFacts]) -> None:
        super().__init__(settings, **facts)
        self.penalty = QuadraticPenalty(2 * settings.strength, self.device)
        self.memory = ReplayMemory(settings.importance_samples, self.random.generator, device=self.device)
        self.parts |= {"penalty": self.penalty, "memory": self.memory}

    def begin_task(self, task: int) -> None:  # noqa: ARG002 - tasks need no number here
        """Starts a new sample of the task's data."""
        self.memory.clear()

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        """One step on the cross entropy and the penalty."""
        x, y = self.labelled(x, y)
        gradient = self.trainer.gradient(F.cross_entropy(self.network.train()(x), y))
        self.trainer.step_along(gradient + self.penalty.gradient(self.trainer.weights()))
        self.memory.add(x=x, y=y)

    def end_task(self) -> None:
        """Adds the task's importances and moves the anchor."""
        if not len(self.memory):
            return
        importance = output_sensitivity(self.network, **self.memory.rows)
        if self.penalty.importance is not None:
            importance = importance + self.penalty.importance
        self.penalty.move(importance, self.trainer.weights())
        self.memory.clear()
