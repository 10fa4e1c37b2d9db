"""What a learner has met so far: which classes, how many tasks; and how it is held to what it answered then."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from cndpm.learners.learner import Footprint
from cndpm.state import State

__all__ = ["SeenClasses", "TaskCount", "distillation"]


class SeenClasses:
    """A mark for every class that a label has named.

    Args:
        n_classes: C.
        device: Where the logits live.
    """

    def __init__(self, n_classes: int, device: torch.device) -> None:
        self.mask = torch.zeros(n_classes, dtype=torch.bool, device=device)

    def add(self, y: Tensor) -> None:
        """Marks these labels' classes, (batch,)."""
        self.mask[y] = True

    def only(self, logits: Tensor) -> Tensor:
        """Logits with every other class at minus infinity, (batch, C); unchanged before the first label."""
        hidden = ~self.mask & self.mask.any()
        return logits.masked_fill(hidden, float("-inf"))

    def footprint(self) -> Footprint:
        """One mark per class."""
        return Footprint(0, self.mask.numel())

    def state_dict(self) -> State:
        """The marks."""
        return {"mask": self.mask.clone()}

    def load_state_dict(self, state: State) -> None:
        """Restores the marks."""
        self.mask = state["mask"].to(self.mask.device, copy=True)


class TaskCount:
    """How many tasks have begun, and what weight the present one has among them."""

    def __init__(self) -> None:
        self.n_tasks = 0

    def begin(self, task: int) -> None:
        """Task number `task` (0, 1, ...) begins."""
        self.n_tasks = task + 1

    @property
    def share_of_present(self) -> float:
        """1 / t in task t; a half where there is a past that nobody counted."""
        return 1 / max(2, self.n_tasks)

    def footprint(self) -> Footprint:
        """Nothing that counts."""
        return Footprint(0, 0)

    def state_dict(self) -> State:
        """The count."""
        return {"n_tasks": self.n_tasks}

    def load_state_dict(self, state: State) -> None:
        """Restores the count."""
        self.n_tasks = state["n_tasks"]


def distillation(logits: Tensor, teacher: Tensor, *, temperature: float) -> Tensor:
    r"""How far the student's answers are from the teacher's, a scalar (Hinton et al. 2015).

    .. math:: -T^2 \frac{1}{B} \sum_b \sum_c \sigma_c(t_b / T) \log \sigma_c(s_b / T)

    Args:
        logits: The student's, (batch, C), minus infinity for classes not seen yet.
        teacher: The teacher's, (batch, C), minus infinity for classes it does not know: there its probability is zero,
            and the student learns to give these classes none.
        temperature: T.
    """
    log_student = F.log_softmax(logits / temperature, dim=1)
    target = F.softmax(teacher / temperature, dim=1)
    # Zero times minus infinity is no number: a class without target probability adds nothing.
    return -(target * log_student.masked_fill(torch.isneginf(teacher), 0)).sum(1).mean() * temperature**2
