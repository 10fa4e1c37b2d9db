"""CN-DPM: a Dirichlet-process mixture of neural experts that grows by itself (sections 3.1 and 3.2 of the paper)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from cndpm.learners.expert_mixture import ExpertMixture
from cndpm.learners.learner import TaskBasedLearner
from cndpm.mixture import Routing, log_responsibilities, route
from cndpm.state import State

__all__ = ["CNDPM", "TaskLabelledCNDPM"]


class CNDPM(ExpertMixture):
    """Each sample is learned by the experts that explain it; what none explains founds a new one (Algorithm 1).

    Example:
        >>> learner = CNDPM(CNDPMSettings(memory_size=100), input_shape=(1, 28, 28), n_classes=10)
        >>> for x, y in stream:
        ...     learner.learn(x, y)
        >>> learner.n_experts
        5
    """

    summary: ClassVar[str] = "the paper's method: a Dirichlet-process mixture of neural experts"

    def _assign(self, x: Tensor, y: Tensor | None) -> Routing:
        log_resp = log_responsibilities(
            self.bank.log_joint(x, y), self.bank.log_joint_new(x, y), self.counts, self.settings.log_alpha
        )
        return route(log_resp, threshold=self.settings.novelty_threshold)


class TaskLabelledCNDPM(ExpertMixture, TaskBasedLearner):
    """One expert per task, by the task's number in training; at test time nobody tells (appendix E of the paper)."""

    summary: ClassVar[str] = "CN-DPM whose experts are chosen by task labels in training"

    def __init__(self, settings: Any, **arguments: Any) -> None:
        super().__init__(settings, **arguments)
        self._task = -1
        self._tasks: list[int] = []

    def begin_task(self, task: int) -> None:
        self._task = task

    def end_task(self) -> None:
        self.consolidate()
        self._claim_experts()

    def _assign(self, x: Tensor, y: Tensor | None) -> Routing:
        self._claim_experts()
        is_known = self._task in self._tasks
        responsibilities = torch.zeros(len(x), self.n_experts, dtype=torch.float64, device=self.device)
        if is_known:
            responsibilities[:, self._tasks.index(self._task)] = 1.0
        return Routing(torch.full((len(x),), not is_known, device=self.device), responsibilities)

    def _claim_experts(self) -> None:
        """An expert founded since the last look belongs to the present task."""
        if self.n_experts > len(self._tasks):
            self._tasks.append(self._task)

    def state_dict(self) -> State:
        return {**super().state_dict(), "task": self._task, "tasks": list(self._tasks)}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._task, self._tasks = state["task"], list(state["tasks"])
