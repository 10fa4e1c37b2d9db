"""A limit on the number of experts, so that a stream without end fits into a machine.

At the limit, either the two most similar experts become one, which loses nothing where experts are sums, or no more are
founded: what would have been one is learned by the experts there are. By default there is no limit until the experts
would take half of the memory of their device.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Literal

import torch

from cndpm.devices import total_memory
from cndpm.experts.bank import Bank
from cndpm.mixture import similarity
from cndpm.model.events import EventLog
from cndpm.model.founding import Founding, Made, Report, teach
from cndpm.model.memory import SampleBatch, ShortTermMemory
from cndpm.model.novelty import Novelty
from cndpm.model.pruning import log_joint

Step = Callable[[Bank, ShortTermMemory, Novelty, Report], Made]

_BYTES = 24
"""Bytes for each number kept: the number itself, routing's factor and the answers' one, in double precision."""


class LimitedFounding(Founding):
    """Founds as another founding does, with at most `max_experts`; None: as many as take half of the device's memory.

    The policy "merge" makes one of the two most similar experts; "refuse" founds no more.
    """

    def __init__(
        self,
        founding: Founding,
        events: EventLog,
        *,
        max_experts: int | None,
        policy: Literal["merge", "refuse"],
        device: torch.device | str,
    ) -> None:
        self._founding, self._events = founding, events
        self.max_experts, self.policy = max_experts, policy
        self._budget = total_memory(torch.device(device)) / 2
        self._has_warned = False

    def sleep(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty, report: Report) -> Made:
        return self._within(self._founding.sleep, bank, memory, novelty, report)

    def consolidate(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty, report: Report) -> Made:
        return self._within(self._founding.consolidate, bank, memory, novelty, report)

    def review(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty) -> None:
        self._founding.review(bank, memory, novelty)

    def is_reached(self, bank: Bank) -> bool:
        """Returns whether one expert more would be too many."""
        n_experts = len(bank.counts)
        if self.max_experts is not None:
            return n_experts >= self.max_experts
        n_bytes = _BYTES * bank.footprint().n_numbers_kept if n_experts else 0
        return n_bytes * (n_experts + 1) > self._budget * max(1, n_experts)

    def _within(self, found: Step, bank: Bank, memory: ShortTermMemory, novelty: Novelty, report: Report) -> Made:
        """Makes an expert of the memory; at the limit two become one, or the memory goes to those there are."""
        is_full = len(memory) > 0 and self.is_reached(bank)
        if is_full and self.policy == "refuse" and bank.train(0) == 1:  # one in training was let in before
            self._warn(f"no more experts are founded: there are {len(bank.counts)}, as many as may be")
            teach(bank, novelty, memory.keep(torch.zeros(len(memory), dtype=torch.bool)))
            return None
        slept_on = memory.batch() if is_full and self.policy == "merge" else None
        made_of = found(bank, memory, novelty, report)
        self._events.follow(len(bank.counts))
        if slept_on is not None and len(bank.counts) > max(1, self.max_experts or 1):
            self._warn(f"the two most similar experts become one: there may be {len(bank.counts) - 1}")
            self._merge(bank, novelty, slept_on)
        return made_of

    def _merge(self, bank: Bank, novelty: Novelty, batch: SampleBatch) -> None:
        """Makes one of the two most similar experts; samples compare networks."""
        alike = bank.affinity()
        alike = similarity(log_joint(bank, batch)) if alike is None else alike
        alike = alike.clone().fill_diagonal_(-torch.inf)
        into, k = sorted(divmod(int(alike.argmax()), len(alike)))
        bank.remove(k, into=into)
        novelty.remove_expert(k)
        self._events.merge(k, into)

    def _warn(self, what: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"the limit on experts is reached, so {what}. Set max_experts, or at_limit='merge' or 'refuse'.",
                stacklevel=2,
            )
