"""Streams without a dataset: from any iterator, or from a function that makes batch number i."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.streams.randomness import Purpose, host_generator
from cndpm.streams.stream import Batch, Stream, Task

__all__ = ["SourceStream", "drifting_clusters", "stream_from"]


def stream_from(
    source: Iterable[Any] | Callable[[int], Any],
    *,
    input_shape: tuple[int, ...] | None = None,
    labelled: bool | None = None,
    n_classes: int | None = None,
    n_batches: int | None = None,
    tasks: tuple[Task, ...] = (),
    device: torch.device | str = "cpu",
) -> SourceStream:
    """A stream of data that need not exist yet.

    Args:
        source: An iterable of batches, or a function that makes batch i (an endless stream, resumed at no cost). A
            batch is a pair (x, y), or x alone for an unlabelled stream: tensors, arrays or lists with a leading batch
            dimension. Bytes are scaled to [0, 1]; other x become float32 as they are.
        input_shape: Shape of one input; seen from the first batch where None.
        labelled: Whether batches are pairs (x, y); seen from the first batch where None.
        n_classes: Number of classes, where known.
        n_batches: Number of batches, where known; the stream ends there at the latest.
        tasks: Test sets, where there are any.
        device: Where batches arrive.

    Example:
        >>> stream = stream_from(([[0.1, 0.2], [0.3, 0.4]], [0, 1]) for _ in range(3))
        >>> stream.input_shape, len(list(stream))
        ((2,), 3)
    """
    stream = SourceStream(_opener(source), n_classes=n_classes, n_batches=n_batches, tasks=tasks, device=device)
    if input_shape is None or labelled is None:
        input_shape, labelled = stream.look_ahead()
    stream.input_shape, stream.labelled = tuple(input_shape), labelled
    return stream


class SourceStream(Stream):
    """Batches of whatever arrives: one stage, tasks only where they were given; see :func:`stream_from`.

    Args:
        open_at: Returns an iterator that begins with batch number `start`.
        n_classes: Number of classes, where known.
        n_batches: Number of batches, where known.
        tasks: Test sets.
        device: Where batches arrive.
    """

    def __init__(
        self,
        open_at: Callable[[int], Iterator[Any]],
        *,
        n_classes: int | None,
        n_batches: int | None,
        tasks: tuple[Task, ...],
        device: torch.device | str,
    ) -> None:
        self._open_at, self._tasks = open_at, tasks
        self.n_classes, self.n_batches, self.device = n_classes, n_batches, torch.device(device)
        self.stage_tasks = (tuple(range(len(tasks))),)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on; a plain iterator is read through up to there, and only forwards."""
        if start < 0 or (self.n_batches is not None and start > self.n_batches):
            raise ValueError(f"start must lie between 0 and {self.n_batches or 'any batch'}; got {start}")
        n_left = None if self.n_batches is None else self.n_batches - start
        return map(self._make_batch, islice(self._open_at(start), n_left))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The test sets that were given."""
        return self._tasks

    def stage_of(self, i: int) -> int:  # noqa: ARG002 - the contract's argument
        """Always 0: nobody says where such data come from."""
        return 0

    def look_ahead(self) -> tuple[tuple[int, ...], bool]:
        """Shape of an input and whether there are labels, seen from the first batch, which is not used up."""
        opened = self._open_at(0)
        first = next(opened, None)
        if first is None:
            raise ValueError("the source has no batches; give one that has, or say input_shape and labelled")
        if isinstance(opened, _Once):
            opened.put_back(first)
        x, y = _pair(first)
        return tuple(torch.as_tensor(x).shape[1:]), y is not None

    def _make_batch(self, raw: Any) -> Batch:
        x, y = _pair(raw)
        inputs = torch.as_tensor(x, device=self.device)
        inputs = inputs / 255 if inputs.dtype == torch.uint8 else inputs.float()
        if tuple(inputs.shape[1:]) != self.input_shape:
            raise ValueError(f"inputs of this stream have shape {self.input_shape}; got {tuple(inputs.shape[1:])}")
        if (y is not None) != self.labelled:
            raise ValueError(
                f"batches of this stream are {'(x, y)' if self.labelled else 'x alone'}; got the other kind"
            )
        return Batch(inputs, None if y is None else _targets(torch.as_tensor(y, device=self.device)))


def _pair(raw: Any) -> tuple[Any, Any]:
    """(x, y) of a raw batch; a tuple is a pair, anything else x alone."""
    if not isinstance(raw, tuple):
        return raw, None
    if len(raw) != 2:
        raise ValueError(f"a batch is a pair (x, y) or x alone; got a tuple of {len(raw)}")
    return raw


def _targets(y: Tensor) -> Tensor:
    """Class indices as int64; real-valued targets as float32."""
    return y.float() if y.is_floating_point() else y.long()


def _opener(source: Iterable[Any] | Callable[[int], Any]) -> Callable[[int], Iterator[Any]]:
    if callable(source):
        return lambda start: map(source, count(start))
    if iter(source) is source:
        return _Once(source).from_number
    return lambda start: islice(iter(source), start, None)


class _Once(Iterator[Any]):
    """An iterator that can be read only once: knows how far it is, and takes back one batch."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator, self._position, self._returned = iterator, 0, list[Any]()

    def __next__(self) -> Any:
        item = self._returned.pop() if self._returned else next(self._iterator)
        self._position += 1
        return item

    def put_back(self, item: Any) -> None:
        self._returned.append(item)
        self._position -= 1

    def from_number(self, start: int) -> _Once:
        if start < self._position:
            raise ValueError(
                f"an iterator cannot go back: batch {start} was asked for, {self._position} have been read. "
                "Make the stream anew, or from a list or a function."
            )
        while self._position < start and next(self, None) is not None:
            pass
        return self


def drifting_clusters(
    *,
    n_classes: int = 4,
    dimension: int = 8,
    batch_size: int = 10,
    period: int = 500,
    spread: float = 0.3,
    seed: int = 0,
) -> Callable[[int], tuple[Tensor, Tensor]]:
    """An endless generator for :func:`stream_from`: normal clusters that drift, and come and go.

    In every `period` of batches two neighbouring classes are present (so each task recurs), while each class's centre
    moves on a circle of radius one that takes ten periods.

    Returns:
        A function from a batch's number to x (batch_size, dimension), float32, and y (batch_size,), int64.
    """
    if n_classes < 2 or dimension < 2 or batch_size < 1 or period < 1 or spread <= 0:
        raise ValueError(
            "drifting_clusters needs n_classes and dimension of at least 2, batch_size and period of at least 1, and a "
            f"positive spread; got {n_classes}, {dimension}, {batch_size}, {period}, {spread}"
        )
    rng = host_generator(seed, Purpose.SYNTHETIC)
    homes, sines, cosines = (rng.normal(size=(n_classes, dimension)) for _ in range(3))

    def draw(i: int) -> tuple[Tensor, Tensor]:
        local = host_generator(seed, Purpose.SYNTHETIC, i)
        y: NDArray[np.int64] = (2 * (i // period) + local.integers(2, size=batch_size)) % n_classes
        angle = 2 * np.pi * i / (10 * period)
        centres = 2 * homes + (np.sin(angle) * sines + np.cos(angle) * cosines) / np.sqrt(dimension)
        x = centres[y] + spread * local.normal(size=(batch_size, dimension))
        return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)

    return draw
