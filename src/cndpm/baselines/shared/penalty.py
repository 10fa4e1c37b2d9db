r"""A quadratic penalty on leaving the weights that earlier tasks settled on, and gradients that importances are of.

.. math:: \frac{c}{2} \sum_t \sum_i F_{t,i} (\theta_i - \theta^*_{t,i})^2

EWC, online EWC, SI and MAS differ in the importances :math:`F` and in whether the anchors :math:`\theta^*_t` of all
tasks or only the last one's count. Its gradient needs two vectors however many tasks there were:
:math:`c\,(P\theta - s)` with :math:`P = \sum_t F_t` and :math:`s = \sum_t F_t \theta^*_t`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from cndpm.baselines.shared.components import NetworkSettings, TensorSlots
from cndpm.baselines.shared.composed import ClassifierLearner
from cndpm.baselines.shared.replay import ReplayMemory
from cndpm.learner import TaskBasedLearner


class QuadraticPenalty(TensorSlots):
    """The penalty's two vectors, both empty before the first task has ended."""

    def __init__(self, strength: float, device: torch.device) -> None:
        super().__init__(device)
        self.strength = strength

    @property
    def importance(self) -> Tensor | None:
        """P, the importances of all tasks together, (n_parameters,); None before the first task has ended."""
        return self.values.get("importance")

    def gradient(self, weights: Tensor) -> Tensor:
        """Returns the penalty's gradient at `weights`, (n_parameters,)."""
        if self.importance is None:
            return torch.zeros_like(weights)
        return self.strength * (self.importance * weights - self.values["pull"])

    def add(self, importance: Tensor, anchor: Tensor) -> None:
        """Adds a task's importances, (n_parameters,), with an anchor of its own, the weights at its end."""
        if self.importance is None:
            self.move(importance, anchor)
        else:
            pull = self.values["pull"] + importance * anchor
            self.values = {"importance": self.importance + importance, "pull": pull}

    def move(self, importance: Tensor, anchor: Tensor) -> None:
        """Replaces all earlier penalties by one."""
        self.values = {"importance": importance.clone(), "pull": importance * anchor}

    def accumulate(self, importance: Tensor, anchor: Tensor, *, decay: float = 1.0) -> None:
        """Adds to the importances of earlier tasks, times `decay`, and moves the anchor of all."""
        if self.importance is not None:
            importance = importance + decay * self.importance
        self.move(importance, anchor)


class PenaltySettings(NetworkSettings):
    """Settings of learners that measure importance at the end of a task."""

    strength: float = Field(1.0, ge=0, description="weight of the penalty, lambda")
    importance_samples: int = Field(200, ge=1, description="samples of a task, kept until its end, to measure on")
    learning_rate: float = Field(1e-3, gt=0, le=10, description="step size")


class PenalisedLearner(ClassifierLearner, TaskBasedLearner):
    """The penalised step, and a uniform sample of the present task to measure importance on when it ends."""

    settings: PenaltySettings

    def _make(self) -> None:
        super()._make()
        self.penalty = QuadraticPenalty(self.settings.strength, self.device)
        self.memory = ReplayMemory(self.settings.importance_samples, self.random.generator, device=self.device)
        self.parts |= {"penalty": self.penalty, "memory": self.memory}

    def begin_task(self, task: int) -> None:
        self.memory.clear()

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        gradient = self.trainer.gradient(F.cross_entropy(self.network.train()(x), y))
        self.trainer.step_along(gradient + self.penalty.gradient(self.trainer.weights()))
        self.memory.add(x=x, y=y)

    def end_task(self) -> None:
        if len(self.memory):
            self._consolidate(self.memory.rows, self.trainer.weights())
            self.memory.clear()

    @abstractmethod
    def _consolidate(self, rows: dict[str, Tensor], weights: Tensor) -> None:
        """Adds the importances measured on rows of the task that ends, with its last weights, to the penalty."""


SampleLoss = Callable[[Tensor, Tensor], Tensor]
"""The loss of one sample from its network output, (1, n_outputs), and its label, (1,)."""


def per_sample_gradients(network: nn.Module, loss: SampleLoss, x: Tensor, y: Tensor) -> Tensor:
    """Returns the gradient of each sample's loss with respect to all parameters, (batch, n_parameters).

    The network is evaluated as in prediction: with batch statistics a single sample would have no gradient of its own.
    """
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    buffers = dict(network.named_buffers())

    def sample_loss(weights: dict[str, Tensor], x_one: Tensor, y_one: Tensor) -> Tensor:
        output = functional_call(network, (weights, buffers), (x_one[None],))
        return loss(output, y_one[None])

    was_training = network.training
    network.eval()
    gradients = vmap(grad(sample_loss), in_dims=(None, 0, 0))(parameters, x, y)
    network.train(was_training)
    return torch.cat([gradients[name].flatten(1) for name in parameters], dim=1)


def mean_over_gradients(
    network: nn.Module, loss: SampleLoss, x: Tensor, y: Tensor, *, of: Callable[[Tensor], Tensor], chunk: int = 32
) -> Tensor:
    """Returns the mean over samples of an elementwise function `of` each one's gradient, (n_parameters,), by chunks."""
    chunks = zip(torch.split(x, chunk), torch.split(y, chunk), strict=True)
    sums: Iterator[Tensor] = (of(per_sample_gradients(network, loss, *part)).sum(0) for part in chunks)
    total = next(sums)
    for part in sums:
        total = total + part
    return total / len(x)
