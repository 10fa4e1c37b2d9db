"""Streams of rows in the order in which they are given: tables, sensors, logs; and where their distribution changes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from cndpm.streams.stream import Block, Stream, Task

__all__ = ["Rows", "stream_of_rows"]


_BLOCK_BATCHES = 50  # batches whose samples a learner may see together: enough to compute ahead


class Rows(NamedTuple):
    """Samples in order, with the places where their distribution changes.

    Attributes:
        x: Inputs, (n, *input_shape), float64.
        y: Class indices (n,), int64, or targets (n,), float64.
        changes: Number of samples before each abrupt change, ascending; empty where none is known.
    """

    x: NDArray[np.float64]
    y: NDArray[Any]
    changes: tuple[int, ...] = ()


def stream_of_rows(
    x: ArrayLike,
    y: ArrayLike,
    *,
    batch_size: int = 10,
    changes: Sequence[int] = (),
    n_classes: int | None = None,
    device: torch.device | str = "cpu",
    name: str = "rows",
) -> Stream:
    """Makes a stream of samples that lie in memory, in their order.

    Args:
        x: Inputs, (n, *input_shape); they become float32.
        y: Class indices (n,) of an integer type, or real-valued targets, (n,) or (n, n_outputs).
        batch_size: Samples in a batch. The last batch before a change may have fewer.
        changes: Number of samples before each change of the distribution; for evaluation, learners are not told.
        n_classes: Number of classes; None counts the labels in y.
        device: Where batches arrive.
        name: Its name in records and reports.

    Example:
        >>> stream = stream_of_rows([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0], batch_size=2, changes=[2])
        >>> stream.n_batches, stream.n_classes, stream.changes
        (2, 2, (2,))
    """
    inputs, labels = np.asarray(x), np.asarray(y)
    if len(inputs) != len(labels) or not len(inputs):
        raise ValueError(f"x and y need the same number of rows, at least one; got {len(inputs)} and {len(labels)}")
    return RowStream(
        Rows(inputs, labels, tuple(changes)),
        batch_size=batch_size,
        n_classes=n_classes,
        device=device,
        description={"name": name},
    )


class RowStream(Stream):
    """Batches of rows in their order; a stage begins at every change. See :func:`stream_of_rows`."""

    def __init__(
        self,
        rows: Rows,
        *,
        batch_size: int,
        n_classes: int | None = None,
        seed: int | None = None,
        device: torch.device | str = "cpu",
        description: dict[str, Any],
    ) -> None:
        n = len(rows.x)
        edges = (0, *rows.changes, n)
        if any(left >= right for left, right in pairwise(edges)) or batch_size < 1:
            raise ValueError(
                f"changes must ascend and lie inside the {n} rows, and batch_size be at least 1; got changes "
                f"{list(rows.changes)} and batch_size {batch_size}"
            )
        self.device, self.seed, self.labelled, self.changes = torch.device(device), seed, True, tuple(rows.changes)
        self.x = torch.from_numpy(rows.x.astype(np.float32)).to(self.device)
        self.y = _targets(rows.y).to(self.device)
        self.input_shape = tuple(self.x.shape[1:])
        is_real = self.y.is_floating_point()
        self.n_classes = None if is_real else int(self.y.max()) + 1 if n_classes is None else n_classes
        self._description, self._batch_size, self._edges = description, batch_size, edges
        per_stage = [-((left - right) // batch_size) for left, right in pairwise(edges)]
        self.stage_starts = tuple(np.cumsum([0, *per_stage[:-1]]).tolist())
        self.n_batches, self.stage_tasks = sum(per_stage), ((),) * len(per_stage)

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Returns an iterator over blocks of up to 50 batches, cut where stages begin."""
        self._check_start(start)
        return self._generate(start)

    @property
    def tasks(self) -> tuple[Task, ...]:
        return ()

    @property
    def target(self) -> Literal["classes", "values"]:
        return "values" if self.y.is_floating_point() else "classes"

    def stage_of(self, i: int) -> int:
        return bisect_right(self.stage_starts, i) - 1

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"batch_size": self._batch_size} | self._description

    def _generate(self, start: int) -> Iterator[Block]:
        batch = 0
        for left, right in pairwise(self._edges):
            for begin in range(left, right, _BLOCK_BATCHES * self._batch_size):
                end = min(begin + _BLOCK_BATCHES * self._batch_size, right)
                stop = batch - ((begin - end) // self._batch_size)
                if stop > start:
                    skipped = max(0, start - batch) * self._batch_size
                    yield Block(self.x[begin:end], self.y[begin:end], self._batch_size, skipped)
                batch = stop


def _targets(y: NDArray[Any]) -> torch.Tensor:
    """Returns class indices as int64, (n,), and real-valued targets as float32, (n, n_outputs)."""
    if y.dtype.kind in "iub":
        return torch.from_numpy(y.astype(np.int64))
    return torch.from_numpy(y.astype(np.float32)).reshape(len(y), -1)


Array = NDArray[np.float64]

_N, _CHANGE = 6000, 3000


def flipped_rule(seed: int) -> Rows:
    """Draws 6,000 rows of five features whose linear rule is reversed at row 3,000."""
    x, y, _ = _halfspace(np.random.default_rng(seed))
    return Rows(x, np.where(np.arange(_N) < _CHANGE, y, 1 - y), (_CHANGE,))


def rotated_rule(seed: int) -> Rows:
    """Draws the rows of :func:`flipped_rule` with a rule that is turned by 90 degrees at row 3,000 instead."""
    rng = np.random.default_rng(seed)
    x, y, normal = _halfspace(rng)
    other = _orthogonal(rng, normal)
    return Rows(x, np.where(np.arange(_N) < _CHANGE, y, x @ other > 0).astype(np.int64), (_CHANGE,))


def rules_in_turn(seed: int) -> Rows:
    """Draws 8,000 rows of five features under two linear rules at right angles that take turns of 2,000 rows."""
    rng = np.random.default_rng(seed)
    x, y, normal = _halfspace(rng, n=8000)
    other = (x @ _orthogonal(rng, normal) > 0).astype(np.int64)
    return Rows(x, np.where(np.arange(8000) // 2000 % 2 == 0, y, other), (2000, 4000, 6000))


def turning_rule(seed: int) -> Rows:
    """Draws 6,000 rows of ten features and three classes whose linear rule turns by 180 degrees, a little every row."""
    rng = np.random.default_rng(seed)
    _orthogonal(rng, _halfspace(rng)[2])  # follows these draws, so that a seed gives one family of streams
    sine, cosine, x = rng.normal(size=(10, 3)), rng.normal(size=(10, 3)), rng.normal(size=(_N, 10))
    angle = np.arange(_N)[:, None] / _N * np.pi
    return Rows(x, (np.cos(angle) * (x @ cosine) + np.sin(angle) * (x @ sine)).argmax(1))


def tripling_scales(seed: int) -> Rows:
    """Draws five domains of 1,000 rows, eight features, a linear rule of its own each; the scale triples every time."""
    rng = np.random.default_rng(seed)
    rules, x = rng.normal(size=(5, 8)), rng.normal(size=(5, 1000, 8))
    y = np.einsum("knd,kd->kn", x, rules) > 0
    x *= 3.0 ** np.arange(5)[:, None, None]
    return Rows(x.reshape(5000, 8), y.reshape(5000).astype(np.int64), (1000, 2000, 3000, 4000))


def flipped_sign(seed: int) -> Rows:
    """Draws 6,000 rows of five features and a linear target whose sign is reversed at row 3,000.

    Its deviation is the square root of five for every seed, that of the noise on it 0.1.
    """
    rng = np.random.default_rng(seed)
    weights, x = rng.normal(size=5), rng.normal(size=(_N, 5))
    weights *= np.sqrt(5 / (weights @ weights))
    sign = np.where(np.arange(_N) < _CHANGE, 1.0, -1.0)
    return Rows(x, sign * (x @ weights) + 0.1 * rng.normal(size=_N), (_CHANGE,))


def _halfspace(rng: np.random.Generator, n: int = _N) -> tuple[Array, NDArray[np.int64], Array]:
    """Draws rows (n, 5), the side of a plane on which they lie (n,), and the plane's normal (5,)."""
    normal = rng.normal(size=5)
    x = rng.normal(size=(n, 5))
    return x, (x @ normal > 0).astype(np.int64), normal


def _orthogonal(rng: np.random.Generator, normal: Array) -> Array:
    """Draws a direction at right angles to another, (5,)."""
    other: Array = rng.normal(size=5)
    other -= normal * (normal @ other) / (normal @ normal)
    return other
