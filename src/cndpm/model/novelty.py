"""Decides which experts learn a sample, and whether it is new: by a concentration set by hand, or by task labels.

The third way, a level that the model sets by itself, is :mod:`cndpm.model.learned_level`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from cndpm.experts.bank import Bank, Evidence
from cndpm.learner import TaskListener
from cndpm.mixture import Routing, is_new, log_responsibilities, route
from cndpm.state import Keeps, listed, whole


class Novelty(Keeps, ABC):
    """Routes batches, and takes note of the experts that come and go; by itself it notes nothing of them."""

    listener: TaskListener | None = None
    """Must be told where tasks begin and end; None where that is not needed."""

    @abstractmethod
    def route(self, evidence: Evidence, labels: Tensor | None) -> Routing:
        """Decides which experts learn each of B samples and which are new; called once for a batch, before learning.

        Without experts everything is new; labels are class indices (B,), where there are any.
        """

    def follow(self, drift: Tensor) -> None:
        """Moves with the evidence where it was renewed as a whole; see :meth:`cndpm.experts.bank.Bank.margin_drift`."""

    def is_still_new(self, labels: Tensor) -> Tensor:
        """Returns, for each label of (B,), whether most of its latest samples were new: (B,) bool."""
        return torch.ones_like(labels, dtype=torch.bool)

    def add_expert(self, held_out: Evidence, labels: Tensor | None) -> None:
        """Takes note of the newest expert, the last one, by H samples that it was not made of, and their labels."""

    def remove_expert(self, k: int) -> None:
        """Forgets expert k."""

    @property
    def n_judged(self) -> int | None:
        """Experts that it keeps something about; None where it keeps nothing by expert."""
        return None

    @abstractmethod
    def explained(self, bank: Bank, sources: Sequence[int]) -> Tensor:
        """Returns the share of the samples of expert b that expert a would take for its own, [a, b], (K, K).

        Of the experts of one mixture, told by `sources` (K,), only the best takes a sample.
        """

    def extend(self, other: Novelty) -> None:
        """Appends what another novelty of the same kind has noted of its experts."""

    def unite(self, groups: Sequence[Sequence[int]], gains: Tensor) -> None:
        """Takes note that every group of experts, together all, is one from now on.

        Each expert's samples have `gains`, (K,), more log evidence now that it is part of its group.
        """

    def relabel(self, mapping: Sequence[int]) -> None:
        """Takes note that class c has the index mapping[c] from now on."""


class FixedLevel(Novelty):
    """Calls samples new by one concentration α, set by hand (equation 7 of the paper): the same level for all."""

    def __init__(self, log_alpha: float) -> None:
        self.log_alpha = log_alpha

    def route(self, evidence: Evidence, labels: Tensor | None) -> Routing:
        log_resp = log_responsibilities(evidence.log_known, evidence.log_new, self.log_alpha)
        return route(evidence.log_known, is_new(log_resp))

    def explained(self, bank: Bank, sources: Sequence[int]) -> Tensor:
        return bank.explained(torch.full((len(bank.counts),), self.log_alpha, dtype=torch.float64), sources)


class TaskLabels(Novelty):
    """Gives every task an expert, by its number in training; never told at test time (appendix E of the paper)."""

    kept: ClassVar = {"task": whole(-1), "tasks": listed(whole(-1))}

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

    @property
    def n_judged(self) -> int:
        return len(self._tasks)
