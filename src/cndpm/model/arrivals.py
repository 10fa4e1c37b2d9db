"""Receives batches on their way to the experts: extreme rows stay outside, pools learn the rest at once.

Where pools answer, the experts say where rows lie and found places for new ones, which no single row is in a hurry
for: rows wait for each other, and a fifth of a memory of them goes to the watch and to the experts together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.chunks import Samples
from cndpm.experts.features.ranges import N_FIRST, N_LATEST
from cndpm.learner import Footprint
from cndpm.model.extremes import Extremes
from cndpm.model.memory import SampleBatch
from cndpm.model.places import Places
from cndpm.model.watch import Watch
from cndpm.state import State, StateError, expect, tensor

Rows = NDArray[np.float64]

_TOGETHER = 0.2
"""Part of the memory's room that goes to the experts together once pools answer: row by row they would cost as much as
the pools, and a memory is filled by five of them at least."""


class Arrivals:
    """Receives batches before the experts do: parts that are None let everything pass.

    `extremes` sets extreme rows aside, `watch` keeps rows to say how new others are, `places` are pools that answer for
    rows with targets. The memory has `room` for samples that make an expert; the experts' samples live on `device`, and
    `n_waiting` rows have not been learned by them yet.

    Example:
        >>> from cndpm.model.cndpm import CNDPM
        >>> learner = CNDPM(CNDPM.Settings(), input_shape=(2,))
        >>> learner.learn(torch.randn(300, 2), torch.arange(300) % 2)
        >>> learner.learn(torch.tensor([[0.0, 1e10], [0.5, 0.5]]), torch.tensor([0, 1]))
        >>> learner.arrivals.describe()["n_set_aside"]
        1
    """

    def __init__(
        self,
        bank: Bank,
        extremes: Extremes | None,
        watch: Watch | None,
        places: Places | None,
        room: int,
        device: torch.device,
    ) -> None:
        self._bank, self._together, self._device = bank, _TOGETHER * room, device
        self.extremes, self.watch, self.places = extremes, watch, places
        self._waiting: list[tuple[Rows, NDArray[Any]]] = []
        self.n_waiting, self._latest = 0, torch.zeros(0, 0)

    def open(self, x: Tensor) -> Tensor:
        """Looks at a block (n, *input_shape) before it is cut into batches; returns it with finite squares."""
        return x if self.extremes is None else self.extremes.look(x)

    def pass_by(self, batch: SampleBatch) -> SampleBatch | None:
        """Returns what the experts learn of a batch where no pools do; None where nothing is left of it."""
        admitted = self.extremes.admit(batch) if self.extremes is not None and self.extremes.is_needed else batch
        if admitted is not None and self.watch is not None:
            self.watch.see(admitted.samples.x)
        return admitted

    def receive(self, x: Rows, targets: Tensor | None) -> SampleBatch | None:
        """Has the pools learn rows (B, d), labels (B,) or values (B, o); returns what the experts learn now, if any."""
        assert self.places is not None and targets is not None
        y = targets.numpy()
        if self.extremes is not None and self.extremes.is_needed:
            is_ordinary = ~self.extremes.judge(torch.from_numpy(x)).numpy()
            x, y = x[is_ordinary], y[is_ordinary]
        if len(y):
            self.places.learn(x, y)
            self._waiting.append((x, y))
            self.n_waiting += len(y)
        return None if self.places.of_experts and self.n_waiting < self._together else self.release()

    def release(self) -> SampleBatch | None:
        """Returns the rows that wait as one batch for the experts, if there are any."""
        if not self._waiting:
            return None
        rows, targets = map(np.concatenate, zip(*self._waiting, strict=True))
        x, y, self._waiting, self.n_waiting = torch.from_numpy(rows).float(), torch.from_numpy(targets), [], 0
        self._latest = torch.cat([self._latest.reshape(-1, x.shape[1]), x])[-N_LATEST:]
        if self.places is not None:
            known = torch.from_numpy(self.places.known(but=len(rows) + 2 * N_LATEST))
            if self._bank.adapt(self._latest, known):
                self.places.begin(N_FIRST)
        together = SampleBatch(Samples(x.to(self._device)), y)
        if self.watch is not None:
            self.watch.see(x)
        return together

    def settle(self) -> None:
        """Takes account of all rows that have come."""
        if self.watch is not None:
            self.watch.settle()
        if self.places is not None:
            self.places.refresh()

    def describe(self) -> dict[str, Any]:
        """Returns ``n_rules`` and who ``answers`` where pools do, ``n_set_aside`` where extreme rows came."""
        shown: dict[str, Any] = {}
        if self.places is not None:
            shown |= {"n_rules": self.places.n_rules, "answers": self.places.shares}
        if self.extremes is not None and self.extremes.n_set_aside:
            shown["n_set_aside"] = self.extremes.n_set_aside
        return shown

    def added_to(self, kept: Footprint) -> Footprint:
        """Returns a footprint with all that is kept here in it."""
        pools = () if self.places is None else self.places.pools
        n_numbers = sum(pool.n_numbers_kept for pool in pools)
        n_samples = self.n_waiting + sum(len(pool.rows) for pool in pools)
        n_bytes = sum(x.nbytes for x, _ in self._waiting) + sum(pool.rows.n_bytes for pool in pools)
        if self.extremes is not None:
            n_numbers += self.extremes.n_numbers_kept
        if self.watch is not None:
            n_samples, n_bytes = n_samples + self.watch.n_rows, n_bytes + self.watch.n_bytes
        return replace(
            kept,
            n_numbers_kept=kept.n_numbers_kept + n_numbers,
            memory_samples=kept.memory_samples + n_samples,
            memory_bytes=kept.memory_bytes + n_bytes,
        )

    def state_dict(self) -> State:
        """Returns the state of every part, None for those that are missing, and the rows that wait."""
        parts = {"extremes": self.extremes, "watch": self.watch, "places": self.places}
        states = {name: None if part is None else part.state_dict() for name, part in parts.items()}
        waiting = [[torch.from_numpy(x).float(), torch.from_numpy(y).clone()] for x, y in self._waiting]
        return {**states, "rows_waiting": waiting, "latest": self._latest.clone()}

    def load_state_dict(self, state: State, n_experts: int, check: Callable[[State], None]) -> None:
        """Restores it to the bit; `check` raises StateError where `x` and `y` of samples are none of this learner."""
        waiting = state.get("rows_waiting")
        if not isinstance(waiting, list) or not all(isinstance(one, list) and len(one) == 2 for one in waiting):
            raise StateError("'rows_waiting' must be a list of samples with their targets")
        for x, y in waiting:
            check({"x": x, "y": y})
        expect(state, {"latest": tensor("n", "d", dtype=torch.float32)})
        if self.places is not None:
            self.places.load_state_dict(state["places"], n_experts)
        if self.extremes is not None:
            self.extremes.load_state_dict(state["extremes"])
        if self.watch is not None:
            self.watch.load_state_dict(state["watch"])
        self._waiting = [(x.cpu().double().numpy(), y.cpu().clone().numpy()) for x, y in waiting]
        self.n_waiting, self._latest = sum(len(x) for x, _ in waiting), state["latest"].cpu().clone()
