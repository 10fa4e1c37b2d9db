"""Makes a stream from a scenario and a seed.

Samples stay on their device as bytes. The order of all samples is drawn once, as indices; chunks of many batches are
gathered and converted to floats at a time and cut into blocks where stages begin, so that one batch costs next to
nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from cndpm.streams.ordering import Purpose, Rows, batch_sizes, blur, device_generator, draw_stage, host_generator
from cndpm.streams.pool import Pool
from cndpm.streams.stream import Block, Stream, Task
from cndpm.streams.transforms import binarise
from cndpm.validation import ConfigError

if TYPE_CHECKING:
    from cndpm.streams.scenario import Scenario, Stage, Subset

_CHUNK_BYTES = 1 << 20  # of floats: fits a cache, and is many batches
_CHUNK_BATCHES = 32  # of large samples too, up to four times the bytes: what learners compute ahead pays off with many


_MAX_SAMPLES = 100_000_000


class ScenarioStream(Stream):
    """Batches as a scenario prescribes; see :meth:`~cndpm.streams.scenario.Scenario.build`.

    An endless scenario begins anew after its last stage: a *round* is one passage through all stages.
    """

    seed: int

    def __init__(
        self, scenario: Scenario, *, data_dir: str | Path | None, seed: int, device: torch.device | str
    ) -> None:
        self.scenario, self.seed, self.device = scenario, seed, torch.device(device)
        self.labelled = scenario.labelled
        self._pool = Pool(scenario, data_dir=data_dir, seed=seed, device=self.device)
        self.input_shape = self._pool.input_shape
        self.n_classes = self._pool.n_classes if scenario.labelled else None
        self._candidates = {s: self._pool.rows(s) for stage in scenario.stages for s in stage.subsets}
        lengths = [self._length(stage) for stage in scenario.stages]
        self.stage_samples = (sum(lengths),) if scenario.iid else tuple(lengths)
        if sum(lengths) > _MAX_SAMPLES:
            raise ConfigError(
                f"scenario {scenario.name} has {sum(lengths):,} samples, whose order is drawn before it begins; at "
                f"most {_MAX_SAMPLES:,} can be. Make it shorter, or endless: scenario.endless=true, run.max_batches=N."
            )
        self._sizes = batch_sizes(self.stage_samples, scenario.batch_size)
        self._sample_starts = np.concatenate([[0], np.cumsum(self._sizes)])
        per_stage = [-(-length // scenario.batch_size) for length in self.stage_samples]
        self.stage_starts = tuple(np.cumsum([0, *per_stage[:-1]]).tolist())
        self.changes = tuple(np.cumsum(self.stage_samples[:-1]).tolist())
        self.n_batches = None if scenario.endless else len(self._sizes)
        self._task_subsets = _group_by_task(scenario)
        names = list(self._task_subsets)
        presented = [dict.fromkeys(names.index(s.task_name) for s in stage.subsets) for stage in scenario.stages]
        self.stage_tasks = (tuple(range(len(names))),) if scenario.iid else tuple(map(tuple, presented))
        self._order_drawn = (0, self._draw_order(0))

    @property
    def n_samples(self) -> int | None:
        """Number of samples in the stream; None where it is endless."""
        return None if self.scenario.endless else int(self._sample_starts[-1])

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Returns an iterator over blocks from batch number `start` on; beginning late costs no more than early."""
        self._check_start(start)
        return self._generate(start)

    def describe(self) -> dict[str, Any]:
        return self.scenario.model_dump(mode="json")

    def stage_of(self, i: int) -> int:
        if i < 0 or (self.n_batches is not None and i >= self.n_batches):
            raise IndexError(f"batches are numbered from 0 to {self.n_batches or 'any number'}, exclusive; got {i}")
        return bisect_right(self.stage_starts, i % len(self._sizes)) - 1

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        tasks = []
        for i, (name, subsets) in enumerate(self._task_subsets.items()):
            x, y, classes = self._pool.test_set(subsets)
            x = self._as_input(x.to(self.device), Purpose.BINARISE_TEST, i)
            tasks.append(Task(name, classes, x, y.to(self.device)))
        return tuple(tasks)

    def _length(self, stage: Stage) -> int:
        """Returns the number of samples in a stage; at least one."""
        if stage.samples is not None:
            return stage.samples
        if stage.steps is not None:
            return stage.steps * self.scenario.batch_size
        assert stage.epochs is not None
        return max(1, round(stage.epochs * sum(len(self._candidates[subset]) for subset in stage.subsets)))

    def _draw_order(self, turn: int) -> Tensor:
        """Draws the rows of the pool in the order of round `turn`, (n_samples,), on the device."""
        rows = np.concatenate([self._draw_stage(stage, turn, i) for i, stage in enumerate(self.scenario.stages)])
        if self.scenario.blur is not None:
            width = self.scenario.blur.width * len(rows) / len(self.scenario.stages)
            rng = host_generator(self.seed, Purpose.BLUR, turn)
            rows = blur(rows, kind=self.scenario.blur.kind, width=width, rng=rng)
        if self.scenario.iid:
            rows = host_generator(self.seed, Purpose.SHUFFLE, turn).permutation(rows)
        return torch.from_numpy(rows).to(self.device)

    def _draw_stage(self, stage: Stage, turn: int, i: int) -> Rows:
        return draw_stage(
            [self._candidates[subset] for subset in stage.subsets],
            self._length(stage),
            weights=[subset.weight or 1.0 for subset in stage.subsets] if stage.weighted else None,
            replacement=stage.with_replacement,
            rng=host_generator(self.seed, Purpose.ORDER, turn, i),
        )

    def _order(self, turn: int) -> Tensor:
        if self._order_drawn[0] != turn:
            self._order_drawn = (turn, self._draw_order(turn))
        return self._order_drawn[1]

    @cached_property
    def _chunk_batches(self) -> int:
        """Batches gathered at a time; depends on nothing but the recipe, since binarising draws chunk by chunk."""
        batch_bytes = 4 * int(np.prod(self.input_shape)) * self.scenario.batch_size
        return max(1, _CHUNK_BYTES // batch_bytes, min(_CHUNK_BATCHES, 4 * _CHUNK_BYTES // batch_bytes))

    def _generate(self, start: int) -> Iterator[Block]:
        if start == self.n_batches:
            return
        turn, first = divmod(start, len(self._sizes))
        while True:
            order = self._order(turn)
            for chunk in range(first // self._chunk_batches, -(-len(self._sizes) // self._chunk_batches)):
                yield from self._make_blocks(order, turn, chunk, first)
            if not self.scenario.endless:
                return
            turn, first = turn + 1, 0

    def _make_blocks(self, order: Tensor, turn: int, chunk: int, first: int) -> Iterator[Block]:
        """Gathers one chunk of a round and cuts it where stages begin; leaves out blocks before batch `first`.

        A stage may end with a shorter batch, so every block ends there. The cuts do not change what is drawn: a chunk
        is binarised whole.
        """
        begin, end = chunk * self._chunk_batches, min((chunk + 1) * self._chunk_batches, len(self._sizes))
        offset = int(self._sample_starts[begin])
        rows = order[offset : int(self._sample_starts[end])]
        x = self._as_input(self._pool.x.index_select(0, rows), Purpose.BINARISE, turn, chunk)
        y = self._pool.y.index_select(0, rows) if self.labelled else None
        edges = [begin, *(start for start in self.stage_starts if begin < start < end), end]
        for left, right in pairwise(edges):
            if right > first:
                part = slice(int(self._sample_starts[left]) - offset, int(self._sample_starts[right]) - offset)
                skipped = int(self._sample_starts[max(first, left)] - self._sample_starts[left])
                yield Block(x[part], None if y is None else y[part], self.scenario.batch_size, skipped)

    def _as_input(self, x: Tensor, purpose: Purpose, *counters: int) -> Tensor:
        """Converts bytes to floats in [0, 1], or to zeros and ones where the scenario binarises; keeps features."""
        if x.dtype != torch.uint8:
            return x
        if self.scenario.transform.binarise:
            return binarise(x, device_generator(self.device, self.seed, purpose, *counters))
        return x / 255


def _group_by_task(scenario: Scenario) -> dict[str, list[Subset]]:
    """Groups subsets by task; tasks in the order in which they first appear."""
    grouped: dict[str, list[Subset]] = {}
    for stage in scenario.stages:
        for subset in stage.subsets:
            grouped.setdefault(subset.task_name, []).append(subset)
    return grouped
