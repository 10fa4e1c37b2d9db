"""Prediction-error classification: one small network per class, and the one that errs least names the class."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from cndpm.baselines.shared.components import FrozenCopy, LearnerPart, NetworkSettings, Trainer, total_footprint
from cndpm.baselines.shared.composed import ComposedLearner
from cndpm.baselines.shared.networks import initialise
from cndpm.learner import Footprint
from cndpm.state import State


class PEC(ComposedLearner):
    r"""Prediction error-based classification (Zajac, Tuytelaars and van de Ven 2024).

    A fixed random teacher :math:`h` maps inputs to vectors; a student :math:`g_c` per class learns to imitate it on
    that class's samples only, and knows nothing of the others:

    .. math:: \theta_c \leftarrow \theta_c - \lambda \nabla \lVert g_c(x) - h(x) \rVert^2 \ (y = c), \qquad
        \log p(c \mid x) \propto -\lVert g_c(x) - h(x) \rVert^2 / \tau

    No class interferes with another, so nothing is forgotten.

    Departures: fully connected networks of one hidden layer for all inputs; the samples of one class in a batch make
    one step; the learning rate falls as :math:`1 / \sqrt{1 + n_c / n_0}` with the class's steps, because the stream's
    length is not known.
    """

    class Settings(NetworkSettings):
        """The students and the teacher."""

        hidden: int = Field(50, ge=1, description="hidden units of each student")
        teacher_hidden: int = Field(400, ge=1, description="hidden units of the random teacher")
        outputs: int = Field(200, ge=1, description="dimension of what the students imitate")
        learning_rate: float = Field(1e-2, gt=0, le=10, description="step size at the start")
        steady_steps: int = Field(100, ge=1, description="n_0, steps after which the step size begins to fall")

    settings: Settings

    def _make(self) -> None:
        super()._make()
        self.teacher = FrozenCopy(self._network(self.settings.teacher_hidden))  # kept, never trained
        self.teacher.take()
        self.students = [
            Student(self._network(self.settings.hidden), self.settings) for _ in range(self.required_classes())
        ]
        self.parts |= {f"student_{label}": student for label, student in enumerate(self.students)}
        self.parts["teacher"] = self.teacher

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        target = self._imitated(x)
        for label in torch.unique(y).tolist():
            mine = y == label
            self.students[label].learn(x[mine], target[mine])

    @torch.no_grad()
    def predict_log_proba(self, x: Tensor) -> Tensor:
        x = x.to(self.device)
        target = self._imitated(x)
        errors = torch.stack([student.errors(x, target) for student in self.students], dim=1)
        unseen = torch.tensor([student.n_steps == 0 for student in self.students], device=self.device)
        if bool(unseen.all()):
            unseen = torch.zeros_like(unseen)
        return F.log_softmax((-errors).masked_fill(unseen, float("-inf")), dim=1)

    def _imitated(self, x: Tensor) -> Tensor:
        assert self.teacher.network is not None
        outputs: Tensor = self.teacher.network(x)
        return outputs

    def footprint(self) -> Footprint:
        return total_footprint(self.parts.values(), n_experts=len(self.students))

    def _network(self, hidden: int) -> nn.Module:
        with torch.device("meta"):
            layers = [
                nn.Linear(math.prod(self.input_shape), hidden),
                nn.GELU(),
                nn.Linear(hidden, self.settings.outputs),
            ]
            network = nn.Sequential(nn.Flatten(), *layers)
        return initialise(network, self.random.generator).to(self.device)


class Student(LearnerPart):
    """Imitates the teacher on one class's samples, with its own optimiser and falling step size."""

    def __init__(self, network: nn.Module, settings: PEC.Settings) -> None:
        self.network = network
        self.settings = settings
        self.trainer = Trainer(network, settings)
        self.n_steps = 0

    def errors(self, x: Tensor, target: Tensor) -> Tensor:
        """Returns each sample's squared distance to the teacher's output, (batch,); `target` is (batch, n_outputs)."""
        difference: Tensor = self.network(x) - target
        return difference.square().sum(1)

    def learn(self, x: Tensor, target: Tensor) -> None:
        """Takes one step on the mean error of samples of the student's class."""
        fall = math.sqrt(1 + self.n_steps / self.settings.steady_steps)
        self.trainer.set_learning_rate(self.settings.learning_rate / fall)
        self.trainer.step(self.errors(x, target).mean())
        self.n_steps += 1

    def footprint(self) -> Footprint:
        """Counts the student's weights."""
        return self.trainer.footprint()

    def state_dict(self) -> State:
        return {"trainer": self.trainer.state_dict(), "n_steps": self.n_steps}

    def load_state_dict(self, state: State) -> None:
        self.trainer.load_state_dict(state["trainer"])
        self.n_steps = state["n_steps"]
