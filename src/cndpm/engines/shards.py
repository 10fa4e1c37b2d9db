"""Shards: parts of a dataset that one worker reads, in pieces, from any row on.

A shard is given as arrays, as a file (CSV, Parquet, npz) or as rows of one; :func:`as_shard` makes one of what it is
given, :func:`split` cuts arrays and files into several. Pieces begin at multiples of their size, counted from the
shard's first row, so that a model that goes on after a crash sees the same pieces.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.datasets.npz import read_npz
from cndpm.errors import CNDPMError
from cndpm.extras import require_extra

__all__ = ["ShardError"]

Piece = tuple[NDArray[Any], list[Any] | NDArray[Any] | None]
"""Rows (n, ...) and their labels or targets, n of them; None where there are none."""


class ShardError(CNDPMError, ValueError):
    """A file of rows cannot be read; the message says where and why."""


class Shard(ABC):
    """Rows that one worker reads."""

    @abstractmethod
    def pieces(self, size: int, start: int = 0) -> Iterator[Piece]:
        """Yields rows in pieces of `size`, the last perhaps of fewer, from `start` on: a multiple of `size`, or all."""

    @abstractmethod
    def __len__(self) -> int:
        """Returns the number of rows."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Shard:
        """Returns a shard of the rows from `start` to before `stop`."""


@dataclass(frozen=True)
class ArrayShard(Shard):
    """Rows in memory."""

    X: NDArray[Any]  # (n, ...)
    y: list[Any] | NDArray[Any] | None  # labels or targets, n of them; None for densities

    def pieces(self, size: int, start: int = 0) -> Iterator[Piece]:
        for begin in range(start, len(self.X), size):
            part = slice(begin, begin + size)
            yield self.X[part], None if self.y is None else self.y[part]

    def __len__(self) -> int:
        return len(self.X)

    def rows(self, start: int, stop: int) -> ArrayShard:
        return ArrayShard(self.X[start:stop], None if self.y is None else self.y[start:stop])


@dataclass(frozen=True)
class FileShard(Shard):
    """Rows of a CSV file with a header, of a Parquet file, or of an npz file with arrays ``x`` and ``y``."""

    path: Path
    target: str | None = None  # column of labels or targets; None where there is none; in npz files it is "y" anyway
    start: int = 0  # the first row that belongs to the shard
    stop: int | None = None  # the first that does not any more; None for all
    as_numbers: bool = False  # whether targets in a CSV file are read as numbers; otherwise they are text

    def pieces(self, size: int, start: int = 0) -> Iterator[Piece]:
        rows = {".csv": self._csv, ".parquet": self._parquet, ".npz": self._npz}.get(self.path.suffix)
        if rows is None:
            raise ShardError(f"{self.path} is no file of rows; .csv, .parquet and .npz are read")
        try:
            yield from rows(size, self.start + start)
        except OSError as error:
            raise ShardError(f"cannot read {self.path}: {error.strerror or error}") from error

    def __len__(self) -> int:
        return self._n_all(self.stop) - self.start

    def rows(self, start: int, stop: int) -> FileShard:
        return FileShard(self.path, self.target, self.start + start, self.start + stop, self.as_numbers)

    def _n_all(self, stop: int | None) -> int:
        if stop is not None:
            return stop
        if self.path.suffix == ".parquet":
            return int(_parquet_file(self.path).metadata.num_rows)
        return sum(len(X) for X, _ in self.pieces(1 << 20)) + self.start

    def _csv(self, size: int, start: int) -> Iterator[Piece]:
        with self.path.open(newline="") as file:
            reader = csv.reader(file)
            place = self._column(next(reader, []))
            lines = islice(reader, start, self.stop)
            while rows := list(islice(lines, size)):
                y = None if place is None else [row.pop(place) for row in rows]
                yield _numbers(rows, self.path), None if y is None else _targets(y, self.as_numbers, self.path)

    def _parquet(self, size: int, start: int) -> Iterator[Piece]:
        file = _parquet_file(self.path)
        names = file.schema_arrow.names
        place = self._column(names)
        features = [name for name in names if place is None or name != names[place]]
        for found in in_pieces(file.iter_batches(batch_size=max(size, 4096)), size, start=start, stop=self.stop):
            table = {name: found[name].to_numpy() for name in found.column_names}
            X = np.stack([table[name] for name in features], axis=1).astype(np.float32)
            yield X, None if place is None else table[names[place]].tolist()

    def _npz(self, size: int, start: int) -> Iterator[Piece]:
        arrays = read_npz(self.path, (("x", "y"), ("x",)))
        whole = ArrayShard(arrays["x"][: self.stop], arrays["y"][: self.stop] if "y" in arrays else None)
        yield from whole.pieces(size, start)

    def _column(self, names: Sequence[str]) -> int | None:
        if self.target is None:
            return None
        if self.target not in names:
            raise ShardError(f"{self.path} has no column {self.target!r}; it has {', '.join(names)[:300]}")
        return list(names).index(self.target)


def as_shard(part: Any, *, target: str | None = None, as_numbers: bool = False) -> Shard:
    """Makes a shard of a path, of a pair of arrays (X, y), of X alone, or of an object with `x` and `y`."""
    if isinstance(part, Shard):
        return part
    if isinstance(part, str | Path):
        return FileShard(Path(part), target, as_numbers=as_numbers)
    if hasattr(part, "x") and hasattr(part, "y"):
        return ArrayShard(np.asarray(part.x), np.asarray(part.y))
    if isinstance(part, tuple) and len(part) == 2:
        X, y = part
        if len(X) != len(y):
            raise ValueError(f"a shard has one label or target per row; got {len(X)} rows and {len(y)}")
        return ArrayShard(np.asarray(X), list(y) if isinstance(y, list | tuple) else np.asarray(y))
    return ArrayShard(np.asarray(part), None)


def split(shards: Sequence[Shard], n: int, *, multiple: int = 10) -> list[Shard]:
    """Cuts shards until there are at least `n`: each into consecutive parts of about the same length.

    Parts but the last of a shard have a multiple of `multiple` rows: whole batches.

    Example:
        >>> [len(part) for part in split([ArrayShard(np.zeros((95, 2)), None)], 2)]
        [40, 55]
    """
    if len(shards) >= n:
        return list(shards)
    parts: list[Shard] = []
    per_shard = -(-n // len(shards))
    for shard in shards:
        length = len(shard)
        bounds = [length * i // per_shard // multiple * multiple for i in range(per_shard)] + [length]
        parts += [shard.rows(a, b) for a, b in pairwise(bounds) if b > a]
    return parts


def _parquet_file(path: Path) -> Any:
    require_extra("pyarrow", purpose="a Parquet file")
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(path)
    except (OSError, ArrowException) as error:
        raise ShardError(f"cannot read {path}: {error}") from error


def in_pieces(batches: Iterable[Any], size: int, *, start: int = 0, stop: int | None = None) -> Iterator[Any]:
    """Yields rows start to stop as tables of Arrow of one size, wherever batches end."""
    from pyarrow import Table

    kept: list[Any] = []
    seen = 0
    for batch in batches:
        first, last = max(start - seen, 0), len(batch) if stop is None else min(stop - seen, len(batch))
        seen += len(batch)
        if last <= first:
            if stop is not None and seen >= stop:
                break
            continue
        kept.append(batch.slice(first, last - first))
        table = Table.from_batches(kept)
        n_whole = len(table) // size * size
        for begin in range(0, n_whole, size):
            yield table.slice(begin, size)
        kept = table.slice(n_whole).to_batches()
    if kept:
        yield Table.from_batches(kept)


def _numbers(rows: Sequence[Sequence[str]], path: Path) -> NDArray[np.float32]:
    try:
        return np.array(rows, dtype=np.float64).astype(np.float32)
    except ValueError as error:
        raise ShardError(
            f"{path}: {error}. Every column but the target holds numbers; name the target (--target, target=)."
        ) from None


def _targets(values: Sequence[str], as_numbers: bool, path: Path) -> list[Any] | NDArray[Any]:
    """Returns targets as numbers; labels as text, which is the same in every shard whatever the others hold."""
    if not as_numbers:
        return list(values)
    try:
        return np.array(values, dtype=np.float64)
    except ValueError as error:
        raise ShardError(f"{path}: {error}. Targets are numbers.") from None
