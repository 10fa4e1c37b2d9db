"""Large buffers that are used again instead of being allocated anew.

Fresh megabytes cost more than the arithmetic done in them: the system hands out zeroed pages one fault at a time and
takes them back as soon as they are free. On a GPU the allocator of torch keeps its memory, so nothing is done there.
"""

from __future__ import annotations

import math
import threading

import torch
from torch import Tensor

_MAX_KEPT = 4


class _Shelf(threading.local):
    """Flat buffers that are not in use; every thread has its own."""

    def __init__(self) -> None:
        self.buffers: list[Tensor] = []


_shelf = _Shelf()


def borrow(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Returns a tensor of arbitrary contents, reserved for the caller until :func:`give_back`.

    Example:
        >>> buffer = borrow((2, 3), torch.zeros(1))
        >>> buffer.shape
        torch.Size([2, 3])
        >>> give_back(buffer)
    """
    if like.device.type != "cpu":
        return like.new_empty(shape)
    size = math.prod(shape)
    fitting = [i for i, b in enumerate(_shelf.buffers) if b.numel() >= size and b.dtype is like.dtype]
    if not fitting:
        return like.new_empty(size).view(shape)
    best = min(fitting, key=lambda i: _shelf.buffers[i].numel())
    return _shelf.buffers.pop(best)[:size].view(shape)


def give_back(*tensors: Tensor) -> None:
    """Takes borrowed tensors back; the caller must not use them again."""
    for tensor in tensors:
        if tensor.device.type == "cpu":
            whole = tensor.untyped_storage().nbytes() // tensor.element_size()
            _shelf.buffers.append(torch.as_strided(tensor.detach(), (whole,), (1,), 0))
    _shelf.buffers.sort(key=Tensor.numel)
    del _shelf.buffers[: max(0, len(_shelf.buffers) - _MAX_KEPT)]
