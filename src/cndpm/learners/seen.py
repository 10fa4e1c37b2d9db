"""Which classes have been seen so far, for learners whose output grows with them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from cndpm.learners.learner import Footprint
from cndpm.state import State

__all__ = ["SeenClasses", "distillation"]


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


def distillation(logits: Tensor, teacher: Tensor, *, temperature: float) -> Tensor:
    r"""How far the student is from the teacher over the classes that the teacher knows, a scalar (Hinton et al. 2015).

    .. math:: -T^2 \frac{1}{B} \sum_b \sum_c \sigma_c(t_b / T) \log \sigma_c(s_b / T)

    Args:
        logits: The student's, (batch, C).
        teacher: The teacher's, (batch, C), minus infinity for classes it does not know, which the student's softmax
            leaves out as well.
        temperature: T.
    """
    unknown = torch.isneginf(teacher)
    log_student = F.log_softmax(logits.masked_fill(unknown, float("-inf")) / temperature, dim=1)
    target = F.softmax(teacher / temperature, dim=1)
    return -(target * log_student.masked_fill(unknown, 0)).sum(1).mean() * temperature**2
