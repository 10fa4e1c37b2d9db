"""A limit on the number of experts, so that a stream without end fits into a machine.

At the limit, either the two most similar experts become one, which loses nothing where experts are sums, or no more are
founded: what would have been one is learned by the experts there are. By default there is no limit until the experts
would take half of the memory of their device.
"""

from __future__ import annotations

import warnings
from typing import Literal

import torch

from cndpm.devices import total_memory
from cndpm.experts.bank import Bank
from cndpm.mixture import similarity
from cndpm.model.events import EventLog
from cndpm.model.founding import teach
from cndpm.model.memory import SampleBatch, ShortTermMemory
from cndpm.model.merging import log_joint
from cndpm.model.novelty import Novelty

__all__ = ["ExpertLimit"]

_BYTES = 24
"""Bytes for each number kept: the number itself, routing's factor and the answers' one, in double precision."""


class ExpertLimit:
    """Keeps the number of experts within bounds.

    Args:
        max_experts: The most there may be; None for as many as take half of the device's memory.
        policy: "merge" makes one of the two most similar experts; "refuse" founds no more.
        device: Where the experts live.

    Example:
        >>> limit = ExpertLimit(100, "merge", torch.device("cpu"))
        >>> from cndpm.model.cndpm import CNDPM
        >>> limit.is_reached(CNDPM(CNDPM.Settings(), input_shape=(4,)).bank)
        False
    """

    def __init__(self, max_experts: int | None, policy: Literal["merge", "refuse"], device: torch.device | str) -> None:
        self.max_experts, self.policy = max_experts, policy
        self._budget = total_memory(torch.device(device)) / 2
        self._has_warned = False
        self._memory: SampleBatch | None = None

    def is_reached(self, bank: Bank) -> bool:
        """Returns whether one expert more would be too many."""
        n_experts = len(bank.counts)
        if self.max_experts is not None:
            return n_experts >= self.max_experts
        n_bytes = _BYTES * bank.footprint().n_numbers_kept if n_experts else 0
        return n_bytes * (n_experts + 1) > self._budget * max(1, n_experts)

    def before(self, bank: Bank, memory: ShortTermMemory, novelty: Novelty) -> bool:
        """Prepares for a sleep; returns False where there is none, as the experts have learned the memory instead.

        Args:
            bank: The experts.
            memory: Samples that are about to become one.
            novelty: Follows their evidence.
        """
        self._memory = None
        if bank.train(0) < 1 or not len(memory) or not self.is_reached(bank):
            return True
        if self.policy == "merge":
            self._memory = memory.batch()
            return True
        self._warn(f"no more experts are founded: there are {len(bank.counts)}, as many as may be")
        teach(bank, novelty, memory.keep(torch.zeros(len(memory), dtype=torch.bool)))
        return False

    def after(self, bank: Bank, novelty: Novelty, events: EventLog) -> None:
        """Makes one of the most similar experts where a sleep has made one too many.

        Args:
            bank: The experts.
            novelty: Forgets the one that goes.
            events: Is told of it.
        """
        batch, self._memory = self._memory, None
        if batch is None or len(bank.counts) < 2 or not self._is_exceeded(bank):
            return
        self._warn(f"the two most similar experts become one: there may be {len(bank.counts) - 1}")
        alike = bank.affinity()
        alike = similarity(log_joint(bank, batch)) if alike is None else alike
        alike = alike.clone().fill_diagonal_(-torch.inf)
        pair = divmod(int(alike.argmax()), len(alike))
        into, k = sorted(pair)
        bank.remove(k, into=into)
        novelty.remove_expert(k)
        events.merge(k, into)

    def _is_exceeded(self, bank: Bank) -> bool:
        return self.max_experts is None or len(bank.counts) > self.max_experts

    def _warn(self, what: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"the limit on experts is reached, so {what}. Set max_experts, or at_limit='merge' or 'refuse'.",
                stacklevel=2,
            )
