"""Makes experts of full memories (lines 13 to 15 of Algorithm 1): always, or only where one earns its place."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from cndpm.experts.bank import Bank, Evidence
from cndpm.mixture import accepts_expert, largest_concept, route
from cndpm.model.memory import SampleBatch, ShortTermMemory
from cndpm.model.novelty import Novelty

_SLEEP_CHUNK = 100
"""Steps between two reports of progress; the result does not depend on it."""

LESSON = 10
"""Samples that an expert learns at once when they are given back to it."""

HELD_OUT = 5
"""Every fifth sample is held out: of a memory to judge and to calibrate its expert, in pruning to judge a lesson."""

_PARTS = 5
"""A concept that has less than a fifth of a memory is not told apart from the others in it."""

Report = Callable[[float], None]
"""Told the part done of a sleep."""
Made = SampleBatch | None


class Founding(ABC):
    """Makes experts of memories."""

    @abstractmethod
    def sleep(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty, report: Report) -> Made:
        """Makes one expert, or none, of a full memory, which has room again afterwards; returns what it was made of.

        What `report` raises, which is told how far the expert is, stops the work there; the next call goes on.
        """

    @abstractmethod
    def consolidate(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty, report: Report) -> Made:
        """Works on the largest concept in the memory, full or not, which is gone afterwards and is returned."""

    def review(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty) -> None:
        """Gives samples back that need not wait; called after a batch of which nothing was new."""


class AlwaysFound(Founding):
    """Makes an expert of whatever is in the memory, as the paper does."""

    def sleep(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty, report: Report) -> Made:
        return self.consolidate(bank, memory, novelty, report)

    def consolidate(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty, report: Report) -> Made:
        _train(bank, batch := memory.batch(), report)
        memory.clear()
        novelty.add_expert(_no_evidence(bank), None)
        return batch


class EarnedFounding(Founding):
    """Makes an expert of a memory only where it earns its place.

    Samples that experts explain after all go back to them. Of the rest an expert is made, which stays only if it
    explains a held-out fifth better than the mixture does without it, by more than its prior cost; otherwise what it
    was made of goes back to the experts too. Where labels tell that the memory holds several concepts, one after the
    other, the expert is made of the largest, and the others wait. Where targets are class labels (`for_labels`) they
    tell strays from what is new.
    """

    def __init__(self, *, for_labels: bool) -> None:
        self._for_labels = for_labels

    def sleep(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty, report: Report) -> Made:
        under_way = bank.train(0) < 1
        if not under_way and len(bank.counts):
            is_tail, in_closed_form = self._tails(bank, memory, novelty)
            self._give_back(bank, memory, novelty, is_tail)
            if len(memory) < memory.capacity * (0.5 if in_closed_form else 1.0):
                return None
        return self._found(bank, memory, novelty, report)

    def consolidate(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty, report: Report) -> Made:
        if len(bank.counts) and bank.train(0) == 1:
            is_tail, _ = self._tails(bank, memory, novelty)
            self._give_back(bank, memory, novelty, is_tail)
        return self._found(bank, memory, novelty, report) if len(memory) else None

    def review(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty) -> None:
        if len(memory) >= LESSON:
            is_stray = self._known_again(memory.batch(), novelty)
            if int(is_stray.sum()) >= LESSON:
                self._give_back(bank, memory, novelty, is_stray)

    def _tails(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty) -> tuple[Tensor, bool]:
        """Returns which samples of the memory belong to known data, (M,) bool, and whether by a closed form.

        Where the evidence of a new expert has a closed form, these are the samples that an expert explains better than
        the rest of the memory would. A network's has none, and what it got wrong would look new to it for ever: there,
        they are the samples whose label is known by now.
        """
        samples, y = memory.batch()
        log_alone = bank.log_leave_one_out(samples, y)
        if log_alone is None:
            return self._known_again(memory.batch(), novelty), False
        return bank.evidence(samples, y).log_known.amax(dim=1) > math.log(len(memory)) + log_alone, True

    def _known_again(self, batch: SampleBatch, novelty: Novelty) -> Tensor:
        """Returns which samples have a label whose latest samples are known, (M,) bool; none without labels."""
        if batch.y is None or not self._for_labels:
            return torch.zeros(len(batch.samples), dtype=torch.bool)
        return ~novelty.is_still_new(batch.y)

    def _give_back(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty, is_tail: Tensor) -> None:
        """Has the experts learn samples of the memory, given by mask."""
        if bool(is_tail.any()):
            teach(bank, novelty, memory.keep(~is_tail))

    def _found(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty, report: Report) -> SampleBatch:
        batch, others = memory.batch(), None
        is_largest = self._largest(bank, memory)
        if not is_largest.all():
            batch, others = batch.select(is_largest), batch.rows(~is_largest)
        n = len(batch.samples)  # the others are held out
        is_founder = (torch.arange(n) % HELD_OUT != HELD_OUT - 1) | (n < 2 * HELD_OUT)
        founders, held_out = batch.select(is_founder), batch.rows(~is_founder)
        _train(bank, founders, report)
        memory.clear()
        if others is not None:
            memory.add(others)
        _follow(bank, novelty)
        evidence = bank.evidence(*held_out) if len(held_out.samples) else _no_evidence(bank)
        if len(bank.counts) > 1 and not self._is_earned(bank, evidence, founders):
            _dismiss(bank, novelty, evidence, founders)
        else:
            novelty.add_expert(evidence, held_out.y if self._for_labels else None)
        teach(bank, novelty, held_out)
        return batch

    def _largest(self, bank: Bank, memory: ShortTermMemory) -> Tensor:
        """Returns which samples of the memory an expert is to be made of, (M,) bool: all of them for networks."""
        y = memory.batch().y
        if y is None or not self._for_labels or not bank.is_additive:
            return torch.ones(len(memory), dtype=torch.bool)
        return torch.from_numpy(largest_concept(y.numpy(), least=max(1, memory.capacity // _PARTS)))

    def _is_earned(self, bank: Bank, evidence: Evidence, founders: SampleBatch) -> bool:
        """Compares the mixture with and without its newest expert on held-out samples.

        Where too few are held out, the founders themselves are asked, each under an expert made of the others.
        """
        counts, log_known = bank.counts, evidence.log_known
        log_n_known, log_n = counts[:-1].sum().clamp_min(1).log(), counts.sum().log()
        if not len(log_known):
            log_alone = bank.log_leave_one_out(*founders)
            if log_alone is None:
                return True
            log_known = bank.evidence(*founders).log_known
            log_known[:, -1] = counts[-1].log() + log_alone
        with_it, without = log_known.logsumexp(dim=1) - log_n, log_known[:, :-1].logsumexp(dim=1) - log_n_known
        return accepts_expert(with_it, without, cost=float(log_n_known))


def teach(bank: Bank, novelty: Novelty, batch: SampleBatch) -> None:
    """Has the experts learn known samples, a few a step as they would have when they came."""
    samples, y = batch
    samples.in_order = True
    for start in range(0, len(samples), LESSON):
        part = samples.part(start, start + LESSON)
        of_part = None if y is None else y[start : start + LESSON]
        log_known = bank.evidence(part, of_part).log_known
        nothing_new = torch.zeros(len(part), dtype=torch.bool)
        bank.learn(part, of_part, route(log_known, nothing_new).responsibilities)
        _follow(bank, novelty)


def _follow(bank: Bank, novelty: Novelty) -> None:
    drift = bank.margin_drift()
    if drift is not None:
        novelty.follow(drift)


def _train(bank: Bank, founders: SampleBatch, report: Report) -> None:
    """Begins an expert, unless one is under way, and trains it to the end."""
    if bank.train(0) == 1:
        bank.found(*founders)
        report(0.0)
    while (done := bank.train(_SLEEP_CHUNK)) < 1:
        report(done)


def _dismiss(bank: Bank, novelty: Novelty, evidence: Evidence, founders: SampleBatch) -> None:
    """Gives back what the newest expert was made of.

    An expert that is a sum goes into the one nearest to it; a network goes, and its samples are learned again.
    """
    newest = len(bank.counts) - 1
    if bank.is_additive:
        log_known = evidence.log_known if len(evidence.log_known) else bank.evidence(*founders).log_known
        bank.remove(newest, into=int(log_known[:, :-1].sum(dim=0).argmax()))
    else:
        bank.remove(newest, into=None)
        teach(bank, novelty, founders)


def _no_evidence(bank: Bank) -> Evidence:
    return Evidence(torch.zeros(0, len(bank.counts), dtype=torch.float64), torch.zeros(0, dtype=torch.float64))
