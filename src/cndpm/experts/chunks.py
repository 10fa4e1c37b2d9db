"""Samples as a bank sees them: inputs, and quantities computed from them once, in buffers that are used again.

A bank opens a block of samples and cuts it into batches. Batches of one chunk share what is computed from it, so that
frozen features are computed for many samples at once. Fresh megabytes cost more than the arithmetic done in them: the
system hands out zeroed pages one fault at a time and takes them back as soon as they are free. So large buffers are
borrowed and given back. On a GPU the allocator of torch keeps its memory, so nothing is done there.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import Tensor

Value = TypeVar("Value")

_MAX_KEPT = 4
"""Buffers of a thread that are kept, the largest."""


class Samples:
    """Consecutive samples (B, ...): a chunk, or a part of one; `parts` are the chunks that joined samples consist of.

    `whole` is the chunk that these are a part of, themselves if they are a chunk, and `start` where they begin in it;
    `following` the chunk behind this one in its block; `in_order` whether its batches are about to be learned in turn.

    Example:
        >>> samples = Samples(torch.arange(6.0).reshape(3, 2))
        >>> samples.part(1, 3).derive("double", None, lambda chunk: 2 * chunk.x)
        tensor([[ 4.,  6.],
                [ 8., 10.]])
    """

    whole: Samples

    def __init__(self, x: Tensor, parts: Sequence[Samples] = ()) -> None:
        self.x, self.parts = x, tuple(parts)
        self.start = 0
        self.following: Samples | None = None
        self.in_order = False
        self._alone: Samples | None = None
        self._derived: dict[str, tuple[object, Any]] = {}

    def __len__(self) -> int:
        return self.x.shape[0]

    def __getattr__(self, name: str) -> Samples:
        """Returns a chunk as the whole of itself.

        Parts hold their whole. A chunk that held itself would stay, with all that was derived of it, until Python looks
        for cycles, and the memory would fill with holes.
        """
        if name != "whole":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self

    def part(self, start: int, stop: int) -> Samples:
        """Returns samples `start` to `stop`, which share the quantities derived of the whole."""
        part = Samples(self.x[start:stop])
        part.whole, part.start = self.whole, self.start + start
        return part

    def alone(self) -> Samples:
        """Returns these samples without their chunk, for quantities that change with every batch; one object always."""
        if self.whole is self:
            return self
        if self._alone is None:
            self._alone = Samples(self.x)
        return self._alone

    def select(self, rows: Tensor) -> Samples:
        """Returns some of the samples, by mask or index on the host, with those of their features that are known."""
        selected = Samples(self.x[rows.to(self.x.device)])
        if "features" in self._derived:
            key, features = self._derived["features"]
            selected._derived["features"] = (key, features[rows.to(features.device)])
        return selected

    def known(self, name: str, key: object) -> Any:
        """Returns a quantity that was derived for `key`, or None."""
        kept = self._derived.get(name)
        return None if kept is None or kept[0] is not key else kept[1]

    def derive(self, name: str, key: object, function: Callable[[Samples], Value]) -> Value:
        """Returns a quantity of these samples, computed for their whole chunk when `key` asks for the first time.

        The key stands for all else that it depends on: another object computes it anew. The function maps a chunk of N
        samples to a value with one entry a sample, cut by slices.
        """
        known = self._derived.get(name)
        if known is None or known[0] is not key:
            of = self.whole
            whole: Any = function(self) if of is self else of.derive(name, key, function)
            value = whole if of is self else whole[self.start : self.start + self.x.shape[0]]
            known = self._derived[name] = (key, value)
        derived: Value = known[1]
        return derived


def open_block(
    x: Tensor, batch_size: int, *, chunk_size: int, start: int = 0, in_order: bool = False
) -> Iterator[Samples]:
    """Cuts a block into batches that share chunks of about `chunk_size` samples, whole batches each.

    Chunks begin at multiples of their size and are copied when they are reached, so that the same block gives the same
    bits wherever one starts, at the beginning of a batch, and however it lies in memory.
    """
    size = batch_size * max(1, chunk_size // batch_size)
    return chain.from_iterable(_chunks(x, batch_size, size, start, in_order))


def _chunks(x: Tensor, batch_size: int, size: int, start: int, in_order: bool) -> Iterator[list[Samples]]:
    """Yields the batches of chunk after chunk; the following chunk is at hand when one is begun."""
    first = start - start % size
    chunk: Samples | None = Samples(x[first : first + size].clone())
    while chunk is not None:
        chunk.in_order = in_order
        begin, first = first, first + size
        if first < len(x):
            chunk.following = Samples(x[first : first + size].clone())
        yield [chunk.part(i, i + batch_size) for i in range(max(0, start - begin), len(chunk), batch_size)]
        # A chunk refers to itself, so only the garbage collector would free what was computed of it, and much later.
        done, chunk = chunk, chunk.following
        done.following, done._derived = None, {}


class _Shelf(threading.local):
    """Flat buffers that are not in use, ascending by size; every thread has its own."""

    def __init__(self) -> None:
        self.buffers: list[Tensor] = []


_shelf = _Shelf()


def borrow(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Returns a tensor of arbitrary contents, reserved for the caller until :func:`give_back`."""
    if like.device.type != "cpu":
        return like.new_empty(shape)
    size = math.prod(shape)
    for i, buffer in enumerate(_shelf.buffers):
        if buffer.numel() >= size and buffer.dtype is like.dtype:
            return _shelf.buffers.pop(i)[:size].view(shape)
    return like.new_empty(size).view(shape)


def give_back(*tensors: Tensor) -> None:
    """Takes borrowed tensors back; the caller must not use them again."""
    for tensor in tensors:
        if tensor.device.type == "cpu":
            whole = tensor.untyped_storage().nbytes() // tensor.element_size()
            _shelf.buffers.append(torch.as_strided(tensor.detach(), (whole,), (1,), 0))
    _shelf.buffers.sort(key=Tensor.numel)
    del _shelf.buffers[: max(0, len(_shelf.buffers) - _MAX_KEPT)]
