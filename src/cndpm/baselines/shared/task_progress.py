"""Classes and tasks that a learner has met so far, and distillation of its earlier answers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.components import FrozenCopy, LearnerPart, N, NetworkSettings
from cndpm.baselines.shared.composed import ComposedLearner
from cndpm.learner import TaskBasedLearner


def only(logits: Tensor, marked: Tensor) -> Tensor:
    """Sets the logits (batch, C) of classes that are not marked (C,) to minus infinity; of none, if none is marked."""
    return logits.masked_fill(~marked & marked.any(), float("-inf"))


class TaskProgress(LearnerPart):
    """Tasks begun, classes seen, and classes that were known when the last task ended."""

    kept = ("n_tasks", "seen", "known")

    def __init__(self, n_classes: int, device: torch.device) -> None:
        self.n_tasks, self.device = 0, device
        self.seen = torch.zeros(n_classes, dtype=torch.bool, device=device)
        self.known = torch.zeros(n_classes, dtype=torch.bool, device=device)

    def begin(self, task: int) -> None:
        """Begins task number `task` (0, 1, ...)."""
        self.n_tasks = task + 1

    def see(self, y: Tensor) -> None:
        """Marks these labels' classes as seen, (batch,)."""
        self.seen[y] = True

    def end(self) -> None:
        """Ends the task: classes seen are known from now on."""
        self.known = self.seen.clone()

    def known_in_turn(self, n: int) -> Tensor:
        """Returns n labels, (n,): the known classes in turn, each as often as the others give or take one."""
        known_first = self.known.long().argsort(descending=True, stable=True)
        return known_first[torch.arange(n, device=self.known.device) % self.known.sum().clamp(min=1)]

    @property
    def share_of_present(self) -> float:
        """The present task's weight against the past, 1 / t in task t; a half where nobody counted."""
        return 1 / max(2, self.n_tasks)


def distillation(logits: Tensor, teacher: Tensor, *, temperature: float) -> Tensor:
    r"""Returns the distance of the student's answers s (batch, C) from the teacher's t, a scalar (Hinton et al. 2015).

    .. math:: -T^2 \frac{1}{B} \sum_b \sum_c \sigma_c(t_b / T) \log \sigma_c(s_b / T)

    Logits are minus infinity for classes that the student has not seen yet, and for those that the teacher does not
    know: there its probability is zero, and the student learns to give these classes none.
    """
    log_student = F.log_softmax(logits / temperature, dim=1)
    target = F.softmax(teacher / temperature, dim=1)
    # Zero times minus infinity is no number: a class without target probability adds nothing.
    return -(target * log_student.masked_fill(torch.isneginf(teacher), 0)).sum(1).mean() * temperature**2


class DreamerSettings(NetworkSettings):
    """A generator and its steps, as van de Ven and Tolias (2018) trained theirs: Adam, no decay, no clipping.

    Where the loss has become flat, Adam divides a decay of the weights by its own size: whatever a task does not use
    shrinks by a whole step size at every step and is gone before the next task needs it. A replaying network learns
    each task for thousands of steps, and hardly any of its weights gets a gradient in all of them.
    """

    latent: int = Field(100, ge=1, description="latent dimension of the generator")
    n_steps: int = Field(5, ge=1, description="steps on each batch, with fresh dreams at every one")
    learning_rate: float = Field(1e-3, gt=0, le=10, description="step size")
    weight_decay: float = Field(0.0, ge=0, description="squared-norm penalty on the weights; costs what no task uses")
    clip_value: float | None = Field(None, gt=0, description="largest absolute value of a gradient; null: no limit")


class RememberingLearner(ComposedLearner, TaskBasedLearner):
    """Keeps networks as they were when the last task ended, and answers among the classes that it has seen."""

    network: Any

    def _make(self) -> None:
        super()._make()
        self.progress = TaskProgress(self.required_classes(), self.device)
        self.parts["progress"] = self.progress

    def _frozen(self, name: str, network: N) -> FrozenCopy[N]:
        """Adds a part that takes a copy of a network whenever a task ends."""
        copy = FrozenCopy(network)
        self.parts[name] = copy
        return copy

    def begin_task(self, task: int) -> None:
        self.progress.begin(task)

    def end_task(self) -> None:
        for part in self.parts.values():
            if isinstance(part, FrozenCopy):
                part.take()
        self.progress.end()

    @torch.no_grad()
    def predict_log_proba(self, x: Tensor) -> Tensor:
        """Returns the log-softmax over the classes seen so far, (batch, C): the others' logits were never trained."""
        self.network.eval()
        return F.log_softmax(only(self._logits(x.to(self.device)), self.progress.seen), dim=1)

    def _logits(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x)
        return logits
