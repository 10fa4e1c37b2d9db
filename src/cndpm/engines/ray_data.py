"""Datasets of Ray Data as shards: workers read blocks of rows from where Ray keeps them, from any row on.

Ray computes a dataset once, by its own workers, into blocks: tables in the memory of its nodes. A shard names some of
them, and a task can read it again after its worker was lost; what `streaming_split` hands out is gone when it was read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.engines.shards import Piece, Shard, ShardError, in_pieces


@dataclass(frozen=True)
class Block:
    """Rows of a table in Ray's memory."""

    # By it Ray finds the table; not shown, since the same dataset has others in another process
    reference: Any = field(repr=False)
    start: int  # the first row of the table that belongs to the block
    stop: int  # the first that does not any more
    digest: str  # of the table's content

    def __len__(self) -> int:
        """Returns the number of rows."""
        return self.stop - self.start


@dataclass(frozen=True)
class RayShard(Shard):
    """Rows of a dataset of Ray; one block after the other is in the memory of the process that reads.

    Attributes:
        blocks: Where the rows are, in their order.
        target: Column of labels or targets; None where there is none.
    """

    blocks: tuple[Block, ...]
    target: str | None = None

    def pieces(self, size: int, start: int = 0) -> Iterator[Piece]:
        from ray.data.block import BlockAccessor

        for table in in_pieces(self.rows(start, len(self))._batches(), size):
            columns = dict(BlockAccessor.for_block(table).to_batch_format("numpy"))
            y = None if self.target is None else _target(columns, self.target)
            yield _features(columns), y

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def rows(self, start: int, stop: int) -> RayShard:
        kept = []
        seen = 0
        for block in self.blocks:
            first, last = max(start - seen, 0), min(stop - seen, len(block))
            if first < last:
                kept.append(replace(block, start=block.start + first, stop=block.start + last))
            seen += len(block)
        return RayShard(tuple(kept), self.target)

    def _batches(self) -> Iterator[Any]:
        """Yields the rows as record batches of Arrow; those of blocks that come later are not fetched yet."""
        import ray

        for block in self.blocks:
            table = ray.get(block.reference).slice(block.start, len(block))
            yield from table.replace_schema_metadata(None).to_batches()  # metadata may differ between blocks


def is_ray_dataset(part: Any) -> bool:
    """Returns whether something is a dataset of Ray Data, without importing Ray."""
    kinds = ((kind.__module__, kind.__name__) for kind in type(part).__mro__)
    return any(module.startswith("ray.data.") and name == "Dataset" for module, name in kinds)


def ray_shard(dataset: Any, *, target: str | None = None) -> RayShard:
    """Has Ray compute a dataset, in the order of its rows, and returns one shard of all of it."""
    import ray

    with _in_order(dataset):
        references = dataset.to_arrow_refs()
    describe = ray.remote(_described)
    about = ray.get([describe.remote(reference) for reference in references])
    blocks = [Block(each, 0, n_rows, digest) for each, (n_rows, digest) in zip(references, about, strict=True)]
    return RayShard(tuple(block for block in blocks if len(block)), target)


@contextmanager
def _in_order(dataset: Any) -> Iterator[None]:
    """Has Ray keep the order of rows, which it otherwise gives up where blocks are done in another one."""
    options = dataset.context.execution_options
    before = options.preserve_order
    options.preserve_order = True
    try:
        yield
    finally:
        options.preserve_order = before


def _described(table: Any) -> tuple[int, str]:
    """Returns the number of rows of a block and a digest of its content; called where the block is."""
    from pyarrow import BufferOutputStream, ipc

    sink = BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return table.num_rows, hashlib.sha256(sink.getvalue()).hexdigest()


def _target(columns: dict[str, NDArray[Any]], name: str) -> list[Any]:
    """Takes the labels or targets out of the columns."""
    if name not in columns:
        raise ShardError(f"the dataset has no column {name!r}; it has {', '.join(columns)[:300]}")
    values: list[Any] = columns.pop(name).tolist()
    return values


def _features(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Returns rows (n, columns), or (n, ...) of the only column where it holds arrays."""
    arrays = list(columns.values())
    try:
        if len(arrays) == 1 and arrays[0].ndim > 1:
            return arrays[0].astype(np.float32)
        if any(array.ndim > 1 for array in arrays):
            raise ValueError("several columns, of which one holds arrays")
        return np.stack(arrays, axis=1).astype(np.float32)
    except (ValueError, TypeError) as error:
        raise ShardError(
            f"the dataset's columns are no rows of numbers: {', '.join(columns)[:300]}: {error}. Every column but the "
            "target holds numbers, or there is one that holds arrays of one shape. Leave others out: "
            "dataset.drop_columns([...])"
        ) from None
