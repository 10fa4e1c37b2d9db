"""Classes and tasks that a learner has met so far, and distillation of its earlier answers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from cndpm.learner import Footprint
from cndpm.state import State


def only(logits: Tensor, marked: Tensor) -> Tensor:
    """Sets the logits (batch, C) of classes that are not marked (C,) to minus infinity; of none, if none is marked."""
    return logits.masked_fill(~marked & marked.any(), float("-inf"))


def log_proba_of_seen(logits: Tensor, progress: TaskProgress) -> Tensor:
    """Returns the log-softmax over the classes seen so far, (batch, C): the others' logits were never trained."""
    return F.log_softmax(only(logits, progress.seen), dim=1)


class TaskProgress:
    """Tasks begun, classes seen, and classes that were known when the last task ended."""

    def __init__(self, n_classes: int, device: torch.device) -> None:
        self.n_tasks = 0
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

    def footprint(self) -> Footprint:
        """Counts two marks per class."""
        return Footprint(0, self.seen.numel() + self.known.numel())

    def state_dict(self) -> State:
        return {"n_tasks": self.n_tasks, "seen": self.seen.clone(), "known": self.known.clone()}

    def load_state_dict(self, state: State) -> None:
        self.n_tasks = state["n_tasks"]
        self.seen = state["seen"].to(self.seen.device, copy=True)
        self.known = state["known"].to(self.known.device, copy=True)


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
