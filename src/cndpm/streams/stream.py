"""Streams: samples in order, cut into batches, and beside them what evaluation needs to know.

A learner receives x and y, never a task. Which stage a batch belongs to and which tasks there are is known to the
stream, where evaluation (and a learner that must be told of tasks) asks for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

from torch import Tensor

__all__ = ["Batch", "Block", "Stream", "Task"]


class Batch(NamedTuple):
    """Samples that a learner receives at once.

    Attributes:
        x: Inputs (batch, *input_shape), float32; images lie in [0, 1]. A view of a larger block: copy what is kept.
        y: Class indices (batch,), int64, or targets (batch, n_outputs), float32; None in an unlabelled stream.
    """

    x: Tensor
    y: Tensor | None


class Block(NamedTuple):
    """Consecutive batches whose samples are known together, for :meth:`cndpm.learner.Learner.learn_block`.

    Attributes:
        x: Inputs (n, *input_shape), float32.
        y: Labels or targets of these, (n, ...); None in an unlabelled stream.
        batch_size: Samples in a batch; the last batch of the block may be shorter.
        first: Samples at the beginning of the block that lie before the batch that was asked for: whole batches.

    Example:
        >>> import torch
        >>> block = Block(torch.arange(5.0)[:, None], None, batch_size=2, first=2)
        >>> [batch.x.flatten().tolist() for batch in block.batches()]
        [[2.0, 3.0], [4.0]]
    """

    x: Tensor
    y: Tensor | None
    batch_size: int
    first: int = 0

    def batches(self) -> Iterator[Batch]:
        """Yields the batches from `first` on, as views of the block."""
        for begin in range(self.first, len(self.x), self.batch_size):
            rows = slice(begin, begin + self.batch_size)
            yield Batch(self.x[rows], None if self.y is None else self.y[rows])


@dataclass(frozen=True)
class Task:
    """A test set.

    Attributes:
        name: The name that reports show.
        classes: The class indices that occur in it.
        x: Inputs (n, *input_shape) as a learner receives them, float32.
        y: Their labels, (n,), int64.
    """

    name: str
    classes: tuple[int, ...]
    x: Tensor
    y: Tensor


class Stream(ABC):
    """Batches in order. A stream of one's own implements :meth:`blocks`, :attr:`tasks` and :meth:`stage_of`.

    Attributes:
        input_shape: Shape of one input.
        n_classes: Number of classes; None where labels are absent or not known beforehand.
        n_batches: Number of batches; None where the stream has no known end.
        labelled: Whether batches carry labels.
        seed: The seed that the samples were drawn with; None where there is none.
        stage_starts: The first batch of each stage (of the first round, in an endless stream).
        stage_tasks: For each stage, the indices into `tasks` of the tasks it presents.
        changes: Number of samples before each change of the distribution (of the first round, in an endless stream);
            empty where none is known. For evaluation; learners are not told.

    Example:
        >>> from cndpm.streams import load_scenario
        >>> stream = load_scenario("split-digits").build(seed=0)
        >>> stream.input_shape, stream.n_classes, stream.n_batches, stream.stage_starts
        ((1, 8, 8), 10, 146, (0, 29, 58, 88, 117))
        >>> x, y = next(stream.batches(start=29))
        >>> tuple(x.shape), sorted(set(y.tolist()))
        ((10, 1, 8, 8), [2, 3])
    """

    input_shape: tuple[int, ...]
    n_classes: int | None
    n_batches: int | None
    labelled: bool
    seed: int | None = None
    stage_starts: tuple[int, ...] = (0,)
    stage_tasks: tuple[tuple[int, ...], ...] = ((),)
    changes: tuple[int, ...] = ()

    @abstractmethod
    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Returns an iterator over blocks that hold the batches from number `start`, of 0 to `n_batches`, on.

        Blocks are cut at the same places whatever `start` is: the first one is whole, and its `first` says how much of
        it lies before batch `start`. Within a block all batches but the last have `batch_size` samples, and all belong
        to one stage. ValueError is raised at once where `start` lies outside the stream.
        """

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Returns an iterator over the batches from number `start` on; the same batches whatever `start` is."""
        return chain.from_iterable(block.batches() for block in self.blocks(start))

    @property
    @abstractmethod
    def tasks(self) -> tuple[Task, ...]:
        """The test sets, one per task; empty where there are none."""

    @abstractmethod
    def stage_of(self, i: int) -> int:
        """Returns the stage of batch number `i`, an index into `stage_tasks`. For evaluation; learners are not told."""

    def describe(self) -> dict[str, Any]:
        """Returns plain values that tell this stream from others, for the record of a run; `name` is among them."""
        return {
            "name": type(self).__name__,
            "labelled": self.labelled,
            "input_shape": list(self.input_shape),
            "n_classes": self.n_classes,
            "n_batches": self.n_batches,
        }

    @property
    def target(self) -> Literal["classes", "values", "none"]:
        """The kind of y: classes, real values, or none."""
        return "classes" if self.labelled else "none"

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def _check_start(self, start: int) -> None:
        if start < 0 or (self.n_batches is not None and start > self.n_batches):
            raise ValueError(f"start must lie between 0 and {self.n_batches or 'any batch'}; got {start}")
