"""CN-DPM: a Dirichlet-process mixture of neural experts that grows by itself (sections 3.1 and 3.2 of the paper)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from cndpm.learner import TaskBasedLearner
from cndpm.mixture import Merge, Routing, accepts_expert, margins, route
from cndpm.model.answering_mixture import Samples
from cndpm.model.expert_mixture import LESSON, ExpertMixture
from cndpm.state import State

__all__ = ["CNDPM", "TaskLabelledCNDPM"]

_HELD_OUT = 5
"""With log_alpha="auto" every fifth sample of the memory is held out, to judge and to calibrate the new expert."""


class CNDPM(ExpertMixture):
    """Each sample is learned by the experts that explain it; what none explains founds a new one (Algorithm 1).

    With a concentration set by hand a full memory always becomes an expert, as in the paper. With ``log_alpha="auto"``
    the model decides: samples of the memory that experts explain after all go back to them, and the candidate becomes
    an expert only if it explains the held-out part of the memory better than the mixture does.

    Example:
        >>> learner = CNDPM(CNDPMSettings(memory_size=100), input_shape=(1, 28, 28), n_classes=10)
        >>> for x, y in stream:
        ...     learner.learn(x, y)
        >>> learner.n_experts
        5
    """

    summary: ClassVar[str] = "the paper's method: a Dirichlet-process mixture of experts that grows by itself"

    def __init__(self, settings: Any, **arguments: Any) -> None:
        super().__init__(settings, **arguments)
        self.concentration = self.settings.novelty.build()

    def _assign(self, x: Tensor, y: Tensor | None) -> Routing:
        log_known = self._log_known(x, y)
        return route(log_known, self.concentration.judge(log_known, self.bank.log_joint_new(x, y), self._labels(y)))

    def _teach(self, x: Tensor, y: Tensor | None, routing: Routing) -> None:
        super()._teach(x, y, routing)
        self._follow()

    def _follow(self) -> None:
        """The level of novelty moves with the evidence, where that was remade."""
        drift = self.bank.margin_drift()
        if drift is not None:
            self.concentration.follow(drift)

    def _labels(self, y: Tensor | None) -> Tensor | None:
        return y if self.settings.target == "classes" else None

    def _founders(self, n: int) -> Tensor:
        if self.settings.novelty.kind != "auto" or n < 2 * _HELD_OUT:
            return super()._founders(n)
        return torch.arange(n, device=self._here) % _HELD_OUT != _HELD_OUT - 1

    def _is_worth_founding(self) -> bool:
        """Returns to the experts what they explain; what is left must be half a memory, or a whole one for networks."""
        if self.settings.novelty.kind != "auto" or self.n_experts == 0:
            return True
        self._return(self._is_tail())
        return self.memory.is_full or (self.bank.is_additive and len(self.memory) >= self.memory.capacity / 2)

    def _review(self) -> None:
        """Strays of what is known go back before others join them in the memory."""
        if self.settings.novelty.kind == "auto" and len(self.memory) >= LESSON:
            is_stray = self._is_known_again(self.memory.data()[1])
            if int(is_stray.sum()) >= LESSON:
                self._return(is_stray)

    def _return(self, is_tail: Tensor) -> None:
        """Samples of the memory, given by mask, go back to the experts."""
        if not bool(is_tail.any()):
            return
        x, y = self.memory.data()
        scaled = self._scaled(x, y)
        self.memory.clear()
        self.memory.add(x[~is_tail], y[~is_tail] if y is not None else None)
        self._give_back((self.bank.select(scaled[0], is_tail), None if scaled[1] is None else scaled[1][is_tail]))

    def _is_tail(self) -> Tensor:
        """Which samples of the memory belong to what is known, (M,) bool.

        Where the evidence of a new expert has a closed form, those that an expert explains better than the rest of the
        memory would. A network's has none, and what it got wrong would look new to it for ever: there, those whose
        label is known by now.
        """
        x, y = self.memory.data()
        scaled = self._scaled(x, y)
        log_alone = self.bank.log_leave_one_out(*scaled)
        if log_alone is not None:
            return self._log_known(*scaled).amax(dim=1) > math.log(len(x)) + log_alone
        return self._is_known_again(y)

    def _is_known_again(self, y: Tensor | None) -> Tensor:
        """Which samples of the memory have a label whose latest samples are known, (M,) bool; none without labels."""
        labels = self._labels(y)
        if labels is None:
            return torch.zeros(len(self.memory), dtype=torch.bool, device=self._here)
        return ~self.concentration.is_still_new(labels)

    def _welcome(self, founders: Samples, held_out: Samples) -> None:
        """The newest expert must earn its place on the held-out samples, which also tell its level of novelty."""
        self._follow()
        if not len(held_out[0]):
            self.concentration.add_expert(self.counts.new_zeros(0))
            return
        self.bank.announce(held_out[0])
        log_known = self._log_known(*held_out)
        if self.n_experts > 1 and not self._is_earned(log_known):
            self._dismiss(log_known, founders, held_out)
            return
        margin, expert = margins(log_known, self.bank.log_joint_new(*held_out))
        own = expert == self.n_experts - 1
        labels = self._labels(held_out[1])
        self.concentration.add_expert(margin[own], labels[own] if labels is not None else None)
        self._give_back(held_out)

    def _is_earned(self, log_known: Tensor) -> bool:
        """log_known is (H, K) with the candidate last."""
        log_n_known, log_n = self.counts[:-1].sum().clamp_min(1).log(), self.counts.sum().log()
        with_it = log_known.logsumexp(dim=1) - log_n
        without = log_known[:, :-1].logsumexp(dim=1) - log_n_known
        return accepts_expert(with_it, without, cost=float(log_n_known))

    def _dismiss(self, log_known: Tensor, founders: Samples, held_out: Samples) -> None:
        """The memory was a tail of what is known, and goes back to the experts.

        An expert that is a sum goes into the one nearest to it; a network goes, and its samples are learned again.
        """
        newest, into = self.n_experts - 1, int(log_known[:, :-1].sum(dim=0).argmax())
        if self.bank.is_additive:
            self._merge(newest, into)
        else:
            self.bank.remove(newest, into=into)
            self.counts = self.counts[:-1]
            self._give_back(founders)
        self._give_back(held_out)

    def prune(self, x: Tensor, y: Tensor | None = None, *, threshold: float = 0.9) -> list[Merge]:
        merges = super().prune(x, y, threshold=threshold)
        for removed in sorted((merge.removed for merge in merges), reverse=True):
            self.concentration.remove_expert(removed)
        return merges

    def state_dict(self) -> State:
        return {**super().state_dict(), "concentration": self.concentration.state_dict()}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.concentration.load_state_dict(state["concentration"])


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

    def _assign(self, x: Tensor, y: Tensor | None) -> Routing:
        is_known = self._task in self._tasks
        responsibilities = torch.zeros(len(x), self.n_experts, dtype=torch.float64, device=self._here)
        if is_known:
            responsibilities[:, self._tasks.index(self._task)] = 1.0
        return Routing(torch.full((len(x),), not is_known, device=self._here), responsibilities)

    def _welcome(self, founders: Samples, held_out: Samples) -> None:
        self._tasks.append(self._task)

    def state_dict(self) -> State:
        return {**super().state_dict(), "task": self._task, "tasks": list(self._tasks)}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._task, self._tasks = state["task"], list(state["tasks"])
