"""Elastic weight consolidation: weights that earlier tasks need are held by springs."""

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

__all__ = ["EWC", "OnlineEWC", "fisher_information"]


def fisher_information(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    r"""The diagonal of the empirical Fisher information, (n_parameters,).

    .. math:: F_i = \frac{1}{N} \sum_n \left(\partial_{\theta_i} \log p(y_n \mid x_n; \theta)\right)^2
    """
    return mean_over_gradients(network, F.cross_entropy, x, y, of=Tensor.square)


class SpringSettings(NetworkSettings):
    """Settings of both kinds of elastic weight consolidation."""

    strength: float = Field(100.0, ge=0, description="weight of the penalty, lambda")
    fisher_samples: int = Field(200, ge=1, description="samples of a task, kept until its end, that measure importance")
    learning_rate: float = Field(1e-3, gt=0, le=10, description="step size")


class ElasticLearner(ClassifierLearner, TaskBasedLearner):
    """What both share: the penalised step and a task's samples for its Fisher information."""

    settings: SpringSettings

    def __init__(self, settings: SpringSettings, **facts: Unpack[StreamFacts]) -> None:
        super().__init__(settings, **facts)
        self.penalty = QuadraticPenalty(settings.strength, self.device)
        self.memory = ReplayMemory(settings.fisher_samples, self.random.generator, device=self.device)
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

    def task_importance(self) -> Tensor:
        """The Fisher information of the task that ends, (n_parameters,); its samples are dropped."""
        importance = fisher_information(self.network, **self.memory.rows)
        self.memory.clear()
        return importance


class EWC(ElasticLearner):
    r"""Elastic weight consolidation (Kirkpatrick et al. 2017).

    .. math:: \mathcal{L}(\theta) = \mathcal{L}_t(\theta)
        + \frac{\lambda}{2} \sum_{s < t} \sum_i F_{s,i} (\theta_i - \theta^*_{s,i})^2

    with the Fisher information :math:`F_s` and the weights :math:`\theta^*_s` at the end of each task :math:`s`.

    Departures: the Fisher information is empirical (observed labels), from at most `fisher_samples` samples of a
    task; the tasks' penalties are kept as two vectors, which is exact.
    """

    class Settings(SpringSettings):
        """The penalty's weight and the samples that measure importance."""

    summary: ClassVar[str] = "elastic weight consolidation: a quadratic penalty for every past task"
    settings: Settings

    def end_task(self) -> None:
        """Adds this task's penalty."""
        if len(self.memory):
            self.penalty.add(self.task_importance(), self.trainer.weights())


class OnlineEWC(ElasticLearner):
    r"""Online elastic weight consolidation (Schwarz et al. 2018, "Progress & Compress").

    .. math:: \mathcal{L}(\theta) = \mathcal{L}_t(\theta)
        + \frac{\lambda}{2} \sum_i \tilde F_{t-1,i} (\theta_i - \theta^*_{t-1,i})^2, \qquad
        \tilde F_t = \gamma \tilde F_{t-1} + F_t

    Departures: as for :class:`EWC`.
    """

    class Settings(SpringSettings):
        """As EWC, with a decay of old importances."""

        decay: float = Field(1.0, ge=0, le=1, description="factor on the importance of earlier tasks, gamma")

    summary: ClassVar[str] = "online EWC: one running penalty, anchored at the last task"
    settings: Settings

    def end_task(self) -> None:
        """Merges this task's importance and moves the anchor."""
        if not len(self.memory):
            return
        importance = self.task_importance()
        if self.penalty.importance is not None:
            importance = importance + self.settings.decay * self.penalty.importance
        self.penalty.move(importance, self.trainer.weights())
