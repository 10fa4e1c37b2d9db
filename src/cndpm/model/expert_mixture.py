"""What every growing mixture of experts does: wake, store what is new, sleep, answer (Algorithm 1 of the paper).

How a sample finds its expert is left open: :class:`cndpm.model.cndpm.CNDPM` infers it by the Dirichlet process,
:class:`cndpm.model.cndpm.TaskLabelledCNDPM` is told.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from cndpm.mixture import Merge, Routing, plan_merges, route, similarity
from cndpm.model.admission import admit_x
from cndpm.model.answering_mixture import AnsweringMixture, Samples, rows_of

__all__ = ["LESSON", "ExpertMixture"]

_SLEEP_CHUNK = 100
"""Steps between two reports of progress; the result does not depend on it."""

LESSON = 10
"""Samples that an expert learns at once when they are given back to it."""


class ExpertMixture(AnsweringMixture):
    """A mixture of experts that grows by one whenever its memory of new samples is full."""

    def learn(self, x: Tensor, y: Tensor | None = None) -> None:
        x = admit_x(x, self.input_shape, self._is_finite)
        y = self._admit_targets(y, len(x))
        self.bank.check(x)
        x = x.to(self.device)
        self.settle()
        if y is not None:
            self._meet(y)
        self.bank.announce(x)
        self._backlog = (x, y)
        self.settle()

    def settle(self) -> None:
        """Finishes what is under way: a sleep that was interrupted, samples that had to wait for it."""
        while self._backlog is not None or self.bank.in_training or self.memory.is_full:
            if self.bank.in_training or self.memory.is_full:
                self.sleep()
            else:
                self._wake()

    def consolidate(self) -> None:
        """Sleeps now on whatever the memory holds, full or not."""
        self.settle()
        if len(self.memory):
            self._found()

    def sleep(self) -> None:
        """Founds a new expert on the memory (lines 13 to 15 of Algorithm 1); goes on where it was interrupted."""
        if self.bank.in_training or self._is_worth_founding():
            self._found()

    def _found(self) -> None:
        x, y = self.memory.data()
        founders = self._founders(len(x))
        if not self.bank.in_training:
            self._scaling = self._current_scaling()
            self.bank.start_expert(*rows_of(self._scaled(x, y), founders))
        while not self.bank.train_expert(_SLEEP_CHUNK):
            self._report("sleep", self.bank.training_progress())
        self.counts = torch.cat([self.counts, founders.sum().to(self.counts).reshape(1)])
        self.memory.clear()
        scaled = self._scaled(x, y)
        self._welcome(rows_of(scaled, founders), rows_of(scaled, ~founders))

    @abstractmethod
    def _assign(self, x: Tensor, y: Tensor | None) -> Routing:
        """Who learns what, for one scaled batch; called only where there is an expert."""

    def _is_worth_founding(self) -> bool:
        """Whether a full memory should become an expert; may take samples out of it that need not."""
        return True

    def _founders(self, n: int) -> Tensor:
        """Which of n samples of the memory the new expert is made of, (n,) bool; the others are held out."""
        return torch.ones(n, dtype=torch.bool, device=self._here)

    @abstractmethod
    def _welcome(self, founders: Samples, held_out: Samples) -> None:
        """Called when the newest expert is ready, with the scaled samples it was made of and those it was not."""

    def _wake(self) -> None:
        """Routes the waiting samples: known ones are learned, new ones are stored while there is room."""
        assert self._backlog is not None
        x, y = self._backlog
        if self.bank.n_experts == 0:
            self._store(x, y)
            return
        scaled = self._scaled(x, y)
        routing = self._assign(*scaled)
        self._teach(*scaled, routing)
        if bool(routing.is_new.any()):
            new = torch.nonzero(routing.is_new)[:, 0]
            self._store(x[new], y[new] if y is not None else None)
        else:
            self._backlog = None
            self._review()

    def _review(self) -> None:
        """Called after a batch of which nothing was new; may take samples out of the memory that need not wait."""

    def _teach(self, x: Tensor, y: Tensor | None, routing: Routing) -> None:
        """Known samples are learned by their experts and counted (lines 18 to 20 of Algorithm 1)."""
        self.bank.learn(x, y, routing.responsibilities)
        self.counts += routing.responsibilities.sum(dim=0)

    def _give_back(self, samples: Samples) -> None:
        """Experts learn what waited in the memory, a few samples a step as they would have when it came."""
        for start in range(0, len(samples[0]), LESSON):
            x, y = rows_of(samples, slice(start, start + LESSON))
            self.bank.announce(x)
            self._teach(x, y, route(self._log_known(x, y), torch.zeros(len(x), dtype=torch.bool, device=self._here)))

    def _store(self, x: Tensor, y: Tensor | None) -> None:
        """Fills the memory; what finds no room waits, to be judged again when the new expert is there."""
        room = self.memory.room
        self.memory.add(x[:room], y[:room] if y is not None else None)
        waiting = (x[room:], y[room:] if y is not None else None)
        self._backlog = waiting if len(waiting[0]) else None

    def _meet(self, y: Tensor) -> None:
        if self.settings.target == "classes":
            self._n_known_classes = max(self._n_known_classes, int(y.max()) + 1)
            self.bank.admit(y)

    def _report(self, phase: str, fraction: float) -> None:
        if self.on_progress is not None:
            self.on_progress(phase, fraction)

    # Pruning

    def similarity(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Cosine similarity of the experts' log-likelihoods of given data, (n_experts, n_experts)."""
        return similarity(self.log_joint(x, y))

    def prune(self, x: Tensor, y: Tensor | None = None, *, threshold: float = 0.9) -> list[Merge]:
        """Removes experts that are redundant on given data (appendix D); their counts go to the ones that remain.

        Sums are merged exactly. A network that is removed takes with it what the others have never seen, so those that
        remain learn four fifths of the given data once, as they would awake, without counting them; what they learned
        is kept if they predict the last fifth no worse. The paper does not do that.

        Returns:
            The merges, in the numbering of the experts before pruning.
        """
        merges = plan_merges(self.similarity(x, y), self.counts, threshold)
        numbering = list(range(self.n_experts))
        for removed, into in merges:
            self._merge(numbering.index(removed), numbering.index(into))
            numbering.remove(removed)
        if merges and not self.bank.is_additive:
            self._learn_again(x, y)
        return merges

    def _learn_again(self, x: Tensor, y: Tensor | None) -> None:
        """Has the experts learn samples that have been counted already, if that helps with a fifth that is held out."""
        x = admit_x(x, self.input_shape).to(self.device)
        samples = self._scaled(x, self._admit_targets(y, len(x)))
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
        held_out, taught = order[: len(x) // 5], order[len(x) // 5 :]
        state, before = self.bank.state_dict(), self._mean_score(*rows_of(samples, held_out))
        for rows in torch.split(taught, LESSON):
            part = rows_of(samples, rows)
            log_known = self._log_known(*part)
            nothing_new = torch.zeros(len(log_known), dtype=torch.bool, device=log_known.device)
            self.bank.learn(*part, route(log_known, nothing_new).responsibilities)
        if self._mean_score(*rows_of(samples, held_out)) < before:
            self.bank.load_state_dict(state)

    def _mean_score(self, x: Tensor, y: Tensor | None) -> float:
        """How well scaled samples are predicted: the mean of log p(y | x) for classes, else of log p(x, y)."""
        scores = []
        for rows in torch.split(torch.arange(len(x)), self.bank.answer_size):
            part = rows_of((x, y), rows)
            if self.settings.target == "classes" and part[1] is not None:
                answers = self._predict_log_proba(part[0])
                scores.append(answers.gather(1, part[1].to(answers.device).unsqueeze(1)).mean(dim=1))
            else:
                scores.append(self._log_known(*part).logsumexp(dim=1))
        return float(torch.cat(scores).mean())

    def _merge(self, removed: int, into: int) -> None:
        self.bank.remove(removed, into=into)
        self.counts[into] += self.counts[removed]
        self.counts = torch.cat([self.counts[:removed], self.counts[removed + 1 :]])
