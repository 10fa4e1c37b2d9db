"""Streams without a dataset: from any iterator, or from a function that makes batch number i."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from cndpm.streams.ordering import Purpose, host_generator
from cndpm.streams.row_files import NamedBatches, is_dataset
from cndpm.streams.stream import Block, Stream, Task

__all__ = ["drifting_clusters", "stream_from"]


def stream_from(
    source: Iterable[Any] | Callable[[int], Any],
    *,
    input_shape: tuple[int, ...] | None = None,
    labelled: bool | None = None,
    n_classes: int | None = None,
    n_batches: int | None = None,
    tasks: tuple[Task, ...] = (),
    device: torch.device | str = "cpu",
    name: str = "stream",
    x_column: str | None = None,
    y_column: str | None = None,
    batch_size: int = 10,
) -> Stream:
    """Makes a stream of data that need not exist yet.

    Args:
        source: An iterable of batches, or a function that makes batch i (an endless stream, resumed at no cost). A
            batch is a pair (x, y), or x alone for an unlabelled stream: tensors, arrays or lists with a leading batch
            dimension, or a dictionary of columns. A DataLoader of torch is such an iterable; a dataset of Hugging Face
            is read in batches of `batch_size`. Bytes are scaled to [0, 1]; other x become float32 as they are.
        input_shape: Shape of one input; seen from the first batch where None.
        labelled: Whether batches are pairs (x, y); seen from the first batch where None.
        n_classes: Number of classes, where known.
        n_batches: Number of batches, where known; the stream ends there at the latest. None takes the length of a
            list, or of a DataLoader whose dataset has one.
        tasks: Test sets, where there are any.
        device: Where batches arrive.
        name: Its name in records and reports.
        x_column: Name of the inputs, where batches have named columns; None takes the only one beside the labels.
        y_column: Name of the labels there; None takes one called label, labels, target or y.
        batch_size: Samples of a batch, for datasets of Hugging Face.

    Example:
        >>> stream = stream_from(([[0.1, 0.2], [0.3, 0.4]], [0, 1]) for _ in range(3))
        >>> stream.input_shape, len(list(stream))
        ((2,), 3)
    """
    columns = NamedBatches(x_column, y_column)
    peek: Callable[[], Any]
    if is_dataset(source):
        open_at, known = columns.opened(source, batch_size)
        peek, n_classes = lambda: _first(open_at(0)), known.get("n_classes") if n_classes is None else n_classes
        n_batches = known.get("n_batches") if n_batches is None else n_batches
    else:
        open_at, peek = _opened(source)
        n_batches = _length(source) if n_batches is None else n_batches
    seen_size, real_valued = None, False
    if input_shape is None or labelled is None:
        x, y = _pair(peek(), columns)
        shape = _inputs(x).shape
        seen_size, input_shape, labelled = shape[0], tuple(shape[1:]), y is not None
        real_valued = y is not None and torch.as_tensor(y).is_floating_point()
    return SourceStream(
        open_at,
        input_shape=tuple(input_shape),
        labelled=labelled,
        n_classes=n_classes,
        n_batches=n_batches,
        test_sets=tasks,
        device=torch.device(device),
        name=name,
        batch_size=seen_size,
        real_valued=real_valued,
        columns=columns,
    )


@dataclass(eq=False)
class SourceStream(Stream):
    """Batches of whatever arrives: one stage, tasks only where they were given; see :func:`stream_from`.

    `open_at` returns an iterator that begins with the batch of a number.
    """

    open_at: Callable[[int], Iterator[Any]]
    input_shape: tuple[int, ...]
    labelled: bool
    n_classes: int | None
    n_batches: int | None
    test_sets: tuple[Task, ...]
    device: torch.device
    name: str
    batch_size: int | None  # samples of the first batch, where it was seen
    real_valued: bool  # whether its labels were real values
    columns: NamedBatches

    def __post_init__(self) -> None:
        self.stage_tasks = (tuple(range(len(self.test_sets))),)

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Returns an iterator over blocks of one batch each, from batch number `start` on.

        A plain iterator is read through up to there, and only forwards.
        """
        self._check_start(start)
        n_left = None if self.n_batches is None else self.n_batches - start
        return map(self._make_block, islice(self.open_at(start), n_left))

    def describe(self) -> dict[str, Any]:
        seen = {} if self.batch_size is None else {"batch_size": self.batch_size}
        return super().describe() | {"name": self.name} | seen

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.test_sets

    @property
    def target(self) -> Literal["classes", "values", "none"]:
        return "values" if self.real_valued else super().target

    def stage_of(self, i: int) -> int:
        return 0

    def _make_block(self, raw: Any) -> Block:
        x, y = _pair(raw, self.columns)
        inputs = _inputs(x).to(self.device)
        inputs = inputs / 255 if inputs.dtype == torch.uint8 else inputs.float()
        if tuple(inputs.shape[1:]) != self.input_shape:
            raise ValueError(f"inputs of this stream have shape {self.input_shape}; got {tuple(inputs.shape[1:])}")
        if (y is not None) != self.labelled:
            kind = "a pair (x, y)" if self.labelled else "x alone"
            raise ValueError(f"every batch of this stream is {kind}, as the first one was; got the other kind")
        if not len(inputs):
            raise ValueError("a batch of this stream has no samples; leave it out of the source")
        if y is not None:
            y = torch.as_tensor(y, device=self.device)
            y = y.float() if y.is_floating_point() else y.long()
        return Block(inputs, y, len(inputs))


def _pair(raw: Any, columns: NamedBatches) -> tuple[Any, Any]:
    """Splits a raw batch into (x, y): named columns, a tuple, or the list that torch's loaders make; else x alone."""
    if isinstance(raw, Mapping):
        raw = columns.pair(raw)
    listed = isinstance(raw, list) and len(raw) in (1, 2) and all(isinstance(part, Tensor) for part in raw)
    if listed and len(raw) == 1:
        return raw[0], None
    if not isinstance(raw, tuple) and not listed:
        return raw, None
    if len(raw) != 2:
        raise ValueError(f"a batch is a pair (x, y) or x alone; got a tuple of {len(raw)}")
    return raw[0], raw[1]


def _inputs(x: Any) -> Tensor:
    """Returns inputs as a tensor; ValueError where they are no numbers, or rows differ in length."""
    try:
        return torch.as_tensor(x)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"inputs of a stream are numbers with a leading batch dimension; got {type(x).__name__} ({error}). "
            "Text has to become rows first, by hashing or by a network."
        ) from error


def _opened(source: Iterable[Any] | Callable[[int], Any]) -> tuple[Callable[[int], Iterator[Any]], Callable[[], Any]]:
    """Returns what reads from a batch's number on, and what looks at the first batch, which is not used up."""
    if callable(source):
        return lambda start: map(source, count(start)), lambda: source(0)
    if isinstance(source, Iterator):
        once = _Once(source)
        return once.from_number, once.peek
    return lambda start: islice(iter(source), start, None), lambda: _first(iter(source))


def _length(source: Any) -> int | None:
    """Returns the number of batches of a list or of a loader of torch over samples that are counted; else None."""
    is_loader = isinstance(source, DataLoader) and not isinstance(source.dataset, IterableDataset)
    return len(source) if isinstance(source, (list, tuple)) or is_loader else None


class _Once(Iterator[Any]):
    """An iterator, which is read only once: knows how far it is, and keeps a batch that was only looked at."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator, self._n_read = iterator, 0

    def __next__(self) -> Any:
        item = next(self._iterator)
        self._n_read += 1
        return item

    def peek(self) -> Any:
        first = _first(self._iterator)
        self._iterator = chain([first], self._iterator)
        return first

    def from_number(self, start: int) -> Iterator[Any]:
        if start < self._n_read:
            raise ValueError(
                f"an iterator cannot go back: batch {start} was asked for, {self._n_read} have been read. "
                "Make the stream anew, or from a list or a function."
            )
        for _ in islice(self, start - self._n_read):
            pass
        return self


def _first(iterator: Iterator[Any]) -> Any:
    for item in iterator:
        return item
    raise ValueError("the source has no batches; give one that has, or say input_shape and labelled")


def drifting_clusters(
    *,
    n_classes: int = 4,
    dimension: int = 8,
    batch_size: int = 10,
    period: int = 500,
    spread: float = 0.3,
    seed: int = 0,
) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Makes an endless source for :func:`stream_from`: normal clusters that drift, and come and go.

    In every `period` of batches two neighbouring classes are present (so each task recurs), while each class's centre
    moves on a circle of radius one that takes ten periods. Batches are x (batch_size, dimension), float32, and y,
    int64.

    Args:
        n_classes: Number of clusters.
        dimension: Of a sample.
        batch_size: Samples of a batch.
        period: Batches until other classes are present.
        spread: Standard deviation of a cluster.
        seed: Determines centres and samples.
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
