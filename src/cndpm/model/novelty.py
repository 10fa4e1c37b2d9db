"""Decides which experts learn a sample, and whether it is new: by a concentration set by hand, or by task labels.

The third way, a level that the model sets by itself, is :mod:`cndpm.model.learned_level`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from cndpm.experts.bank import Bank, Evidence
from cndpm.learner import TaskListener
from cndpm.mixture import Routing, is_new, log_responsibilities, route
from cndpm.state import State, StateError, expect, whole

__all__ = ["FixedLevel", "Novelty", "TaskLabels"]


class Novelty(ABC):
    """Routes batches, and takes note of the experts that come and go.

    Attributes:
        listener: Must be told where tasks begin and end; None where that is not needed.

    Example:
        >>> from cndpm.model.learned_level import LearnedLevel
        >>> [issubclass(kind, Novelty) for kind in (FixedLevel, TaskLabels, LearnedLevel)]
        [True, True, True]
    """

    listener: TaskListener | None = None

    @abstractmethod
    def route(self, evidence: Evidence, labels: Tensor | None) -> Routing:
        """Decides which experts learn each of B samples and which are new; called once for a batch, before learning.

        Args:
            evidence: Of the batch; without experts everything is new.
            labels: Class indices (B,), where there are any.
        """

    @abstractmethod
    def follow(self, drift: Tensor) -> None:
        """Moves with the evidence where it was renewed as a whole; see :meth:`cndpm.experts.bank.Bank.margin_drift`."""

    @abstractmethod
    def is_still_new(self, labels: Tensor) -> Tensor:
        """Returns, for each label of (B,), whether most of its latest samples were new: (B,) bool."""

    @abstractmethod
    def add_expert(self, held_out: Evidence, labels: Tensor | None) -> None:
        """Takes note of the newest expert, the last one.

        Args:
            held_out: Evidence of samples that it was not made of.
            labels: Their class indices (H,), where there are any.
        """

    @abstractmethod
    def remove_expert(self, k: int) -> None:
        """Forgets expert k."""

    @property
    def n_judged(self) -> int | None:
        """Experts that it keeps something about; None where it keeps nothing by expert."""
        return None

    @abstractmethod
    def explained(self, bank: Bank, sources: Sequence[int]) -> Tensor:
        """Returns the share of the samples of expert b that expert a would take for its own, [a, b], (K, K).

        Args:
            bank: The experts.
            sources: The mixture that each expert comes from, (K,).
        """

    @abstractmethod
    def extend(self, other: Novelty) -> None:
        """Appends what another novelty of the same kind has noted of its experts."""

    @abstractmethod
    def unite(self, groups: Sequence[Sequence[int]], gains: Tensor) -> None:
        """Takes note that every group of experts is one from now on.

        Args:
            groups: Experts; together all of them.
            gains: How much more log evidence each expert's samples have now that it is part of its group, (K,).
        """

    def relabel(self, mapping: Sequence[int]) -> None:
        """Takes note that class c has the index mapping[c] from now on."""

    @abstractmethod
    def state_dict(self) -> State:
        """Returns everything noted."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Restores it."""


class FixedLevel(Novelty):
    """Calls samples new by one concentration α, set by hand (equation 7 of the paper).

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

    def follow(self, drift: Tensor) -> None:
        """Does nothing: the level was set by hand."""

    def is_still_new(self, labels: Tensor) -> Tensor:
        return torch.ones_like(labels, dtype=torch.bool)

    def add_expert(self, held_out: Evidence, labels: Tensor | None) -> None:
        """Does nothing: the level is the same for all.

        Args:
            held_out: Ignored.
            labels: Ignored.
        """

    def remove_expert(self, k: int) -> None:
        """Does nothing: the level is the same for all."""

    def explained(self, bank: Bank, sources: Sequence[int]) -> Tensor:
        return bank.merging.explained(torch.full((len(bank.counts),), self.log_alpha, dtype=torch.float64), sources)

    def extend(self, other: Novelty) -> None:
        """Does nothing: the level is the same for all."""

    def unite(self, groups: Sequence[Sequence[int]], gains: Tensor) -> None:
        """Does nothing: the level is the same for all.

        Args:
            groups: Ignored.
            gains: Ignored.
        """

    def state_dict(self) -> State:
        return {}

    def load_state_dict(self, state: State) -> None:
        """Does nothing: there is no state."""


class TaskLabels(Novelty):
    """Gives every task an expert, by the task's number in training; never told at test time (appendix E of the paper).

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

    def follow(self, drift: Tensor) -> None:
        """Does nothing: evidence plays no part."""

    def is_still_new(self, labels: Tensor) -> Tensor:
        return torch.ones_like(labels, dtype=torch.bool)

    def add_expert(self, held_out: Evidence, labels: Tensor | None) -> None:
        self._tasks.append(self._task)

    def remove_expert(self, k: int) -> None:
        del self._tasks[k]

    def explained(self, bank: Bank, sources: Sequence[int]) -> Tensor:
        tasks = torch.tensor(self._tasks)
        return (tasks[:, None] == tasks).double()

    def extend(self, other: Novelty) -> None:
        assert isinstance(other, TaskLabels)
        self._tasks = self._tasks + other._tasks

    def unite(self, groups: Sequence[Sequence[int]], gains: Tensor) -> None:
        self._tasks = [self._tasks[group[0]] for group in groups]

    def state_dict(self) -> State:
        return {"task": self._task, "tasks": list(self._tasks)}

    @property
    def n_judged(self) -> int:
        return len(self._tasks)

    def load_state_dict(self, state: State) -> None:
        expect(state, {"task": whole(-1)})
        if not all(type(task) is int for task in state["tasks"]):
            raise StateError(f"'tasks' must be numbers; got {str(state['tasks'])[:80]}")
        self._task, self._tasks = state["task"], list(state["tasks"])
