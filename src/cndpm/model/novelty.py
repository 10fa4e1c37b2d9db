"""Who learns a sample, and whether it is new: a concentration set by hand, one that the model sets, or task labels.

Each takes the evidence of a batch and answers with a :class:`~cndpm.mixture.responsibility.Routing`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from cndpm.experts.bank import Evidence
from cndpm.learner import TaskListener
from cndpm.mixture import Routing, is_new, log_responsibilities, margins, route
from cndpm.mixture.auto_concentration import AutoConcentration
from cndpm.state import State

__all__ = ["FixedLevel", "LearnedLevel", "Novelty", "TaskLabels"]


class Novelty(ABC):
    """Decides about batches, and takes note of the experts that come and go.

    Attributes:
        listener: Must be told where tasks begin and end; None where nobody must.
    """

    listener: TaskListener | None = None

    @abstractmethod
    def route(self, evidence: Evidence, labels: Tensor | None) -> Routing:
        """Decides who learns each of B samples and which are new; called once for every batch, before it is learned.

        Args:
            evidence: Of the batch; without experts everything is new.
            labels: Class indices (B,), where there are any.
        """

    @abstractmethod
    def is_still_new(self, labels: Tensor) -> Tensor:
        """Returns, for each label of (B,), whether most of its latest samples were new: (B,) bool."""

    @abstractmethod
    def add_expert(self, held_out: Evidence, labels: Tensor | None) -> None:
        """Takes note of the newest expert, the last one, and of samples it was not made of, with labels (H,)."""

    @abstractmethod
    def remove_expert(self, k: int) -> None:
        """Forgets expert k."""

    @abstractmethod
    def state_dict(self) -> State:
        """What was noted."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Restores it."""


class FixedLevel(Novelty):
    """The paper's rule: one concentration α, set by hand (equation 7).

    Args:
        log_alpha: Any finite number.

    Example:
        >>> import torch
        >>> evidence = Evidence(torch.tensor([[0.0], [-9.0]]), torch.zeros(2))
        >>> FixedLevel(log_alpha=-5.0).route(evidence, None).is_new
        tensor([False,  True])
    """

    def __init__(self, log_alpha: float) -> None:
        self.log_alpha = log_alpha

    def route(self, evidence: Evidence, labels: Tensor | None) -> Routing:
        log_resp = log_responsibilities(evidence.log_known, evidence.log_new, self.log_alpha)
        return route(evidence.log_known, is_new(log_resp))

    def is_still_new(self, labels: Tensor) -> Tensor:
        return torch.ones_like(labels, dtype=torch.bool)

    def add_expert(self, held_out: Evidence, labels: Tensor | None) -> None:
        """Does nothing: the level is the same for all."""

    def remove_expert(self, k: int) -> None:
        """Does nothing: the level is the same for all."""

    def state_dict(self) -> State:
        return {}

    def load_state_dict(self, state: State) -> None:
        """Does nothing: there is no state."""


class LearnedLevel(Novelty):
    """The level follows from what known samples were like; see :mod:`cndpm.mixture.auto_concentration`.

    Args:
        novelty_rate: How often a known sample may be called new, about.
        window: Consecutive samples whose evidence is pooled; 1 judges each alone.

    Example:
        >>> import torch
        >>> level = LearnedLevel(novelty_rate=0.01, window=10)
        >>> level.add_expert(Evidence(torch.randn(50, 1), torch.full((50,), -20.0)), None)
        >>> level.route(Evidence(torch.full((10, 1), -30.0), torch.full((10,), -20.0)), None).is_new.all()
        tensor(True)
    """

    def __init__(self, *, novelty_rate: float, window: int) -> None:
        self.concentration = AutoConcentration(novelty_rate=novelty_rate, window=window)

    def route(self, evidence: Evidence, labels: Tensor | None) -> Routing:
        log_known, log_new, drift = evidence
        if drift is not None:
            self.concentration.follow(drift)
        if not log_known.shape[1]:
            return Routing(torch.ones(len(log_known), dtype=torch.bool), log_known)
        return route(log_known, self.concentration.judge(log_known, log_new, labels))

    def is_still_new(self, labels: Tensor) -> Tensor:
        return self.concentration.is_still_new(labels)

    def add_expert(self, held_out: Evidence, labels: Tensor | None) -> None:
        if held_out.drift is not None:
            self.concentration.follow(held_out.drift)
        if not len(held_out.log_known):
            self.concentration.add_expert(held_out.log_new)
            return
        margin, expert = margins(held_out.log_known, held_out.log_new)
        own = expert == held_out.log_known.shape[1] - 1
        self.concentration.add_expert(margin[own], None if labels is None else labels[own])

    def remove_expert(self, k: int) -> None:
        self.concentration.remove_expert(k)

    def state_dict(self) -> State:
        return self.concentration.state_dict()

    def load_state_dict(self, state: State) -> None:
        self.concentration.load_state_dict(state)


class TaskLabels(Novelty):
    """One expert per task, by the task's number in training; at test time nobody tells (appendix E of the paper).

    Args:
        at_end: Called when a task is over.

    Example:
        >>> import torch
        >>> labels = TaskLabels()
        >>> labels.begin_task(0)
        >>> labels.route(Evidence(torch.zeros(2, 0), torch.zeros(2)), None).is_new
        tensor([True, True])
    """

    def __init__(self, at_end: Callable[[], None] = lambda: None) -> None:
        self._at_end, self.listener = at_end, self
        self._task = -1
        self._tasks: list[int] = []

    def begin_task(self, task: int) -> None:
        """Takes note that what follows belongs to task number `task`."""
        self._task = task

    def end_task(self) -> None:
        """Takes note that the task is over."""
        self._at_end()

    def route(self, evidence: Evidence, labels: Tensor | None) -> Routing:
        is_known = self._task in self._tasks
        responsibilities = torch.zeros_like(evidence.log_known, dtype=torch.float64)
        if is_known:
            responsibilities[:, self._tasks.index(self._task)] = 1.0
        return Routing(torch.full((len(responsibilities),), not is_known), responsibilities)

    def is_still_new(self, labels: Tensor) -> Tensor:
        return torch.ones_like(labels, dtype=torch.bool)

    def add_expert(self, held_out: Evidence, labels: Tensor | None) -> None:
        self._tasks.append(self._task)

    def remove_expert(self, k: int) -> None:
        del self._tasks[k]

    def state_dict(self) -> State:
        return {"task": self._task, "tasks": list(self._tasks)}

    def load_state_dict(self, state: State) -> None:
        self._task, self._tasks = state["task"], list(state["tasks"])
