"""Large buffers that are used again instead of being allocated anew.

Fresh megabytes cost more than the arithmetic done in them: the system hands out zeroed pages one fault at a time and
takes them back as soon as they are free. On a GPU the allocator of torch keeps its memory, so nothing is done there.
"""

from __future__ import annotations

import math
import threading

import torch
from torch import Tensor

__all__ = ["borrow", "give_back"]

_MAX_KEPT = 4


class _Shelf(threading.local):
    """Flat buffers that nobody uses; every thread has its own."""

    def __init__(self) -> None:
        self.buffers: list[Tensor] = []


_shelf = _Shelf()


def borrow(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """A tensor of arbitrary contents with the type and device of `like`; it is the caller's until given back."""
    if like.device.type != "cpu":
        return like.new_empty(shape)
    size = math.prod(shape)
    fitting = [i for i, b in enumerate(_shelf.buffers) if b.numel() >= size and b.dtype is like.dtype]
    if not fitting:
        return like.new_empty(size).view(shape)
    best = min(fitting, key=lambda i: _shelf.buffers[i].numel())
    return _shelf.buffers.pop(best)[:size].view(shape)


def give_back(*tensors: Tensor) -> None:
    """Returns what was borrowed; whoever gives a tensor back must not look at it again."""
    for tensor in tensors:
        if tensor.device.type == "cpu":
            whole = tensor.untyped_storage().nbytes() // tensor.element_size()
            _shelf.buffers.append(torch.as_strided(tensor.detach(), (whole,), (1,), 0))
    _shelf.buffers.sort(key=Tensor.numel)
    del _shelf.buffers[: max(0, len(_shelf.buffers) - _MAX_KEPT)]
