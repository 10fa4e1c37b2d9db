"""Streams: batches in order, and beside them what evaluation needs to know.

A batch carries x and y, never a task. Which stage a batch belongs to and which tasks there are is known to the stream,
where evaluation (and a task-based run) asks for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

__all__ = ["Batch", "Stream", "Task"]


class Batch(NamedTuple):
    """What a learner receives.

    Attributes:
        x: Inputs (batch, *input_shape), float32; images lie in [0, 1]. A view of a larger block: copy what is kept.
        y: Class indices (batch,), int64; None in an unlabelled stream.
    """

    x: Tensor
    y: Tensor | None


@dataclass(frozen=True)
class Task:
    """A test set: inputs x (n, *input_shape) as a learner receives them, labels y (n,), and the classes in it."""

    name: str
    classes: tuple[int, ...]
    x: Tensor
    y: Tensor


class Stream(ABC):
    """Batches in order.

    Attributes:
        input_shape: Shape of one input.
        n_classes: Number of classes; None where labels are absent or not known beforehand.
        n_batches: Number of batches; None where the stream has no known end.
        labelled: Whether batches carry labels.
        stage_starts: The first batch of each stage (of the first round, in an endless stream).
        stage_tasks: For each stage, the indices into `tasks` of what it presents.
    """

    input_shape: tuple[int, ...]
    n_classes: int | None
    n_batches: int | None
    labelled: bool
    stage_starts: tuple[int, ...] = (0,)
    stage_tasks: tuple[tuple[int, ...], ...] = ((),)

    @abstractmethod
    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on; the same ones whatever `start` is."""

    @property
    @abstractmethod
    def tasks(self) -> tuple[Task, ...]:
        """The test sets, one per task."""

    @abstractmethod
    def stage_of(self, i: int) -> int:
        """The stage of batch number `i`, an index into `stage_tasks`. For evaluation; learners are not told."""

    @property
    def n_stages(self) -> int:
        """Number of stages."""
        return len(self.stage_starts)

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()
