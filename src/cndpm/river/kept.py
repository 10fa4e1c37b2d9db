"""Rows kept so that a model can be founded anew on them, the latest and some of all before; and what objects hold."""

from __future__ import annotations

import gc
import random
import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from torch import Tensor

Row = TypeVar("Row")


class Kept(Generic[Row]):
    """Keeps everything up to `capacity`, then the latest half and a uniform sample of what came before, by `seed`.

    Example:
        >>> kept = Kept(capacity=4, seed=0)
        >>> for i in range(100):
        ...     kept.add(i)
        >>> len(kept), list(kept)[2:], list(kept) == sorted(kept)
        (4, [98, 99], True)
    """

    def __init__(self, capacity: int, seed: int) -> None:
        self._n_latest = capacity // 2
        self._n_former = capacity - self._n_latest
        self._latest: deque[Row] = deque()
        self._former: list[Row] = []
        self._n_before = 0
        self._draws = random.Random(seed)

    def __len__(self) -> int:
        return len(self._former) + len(self._latest)

    def __iter__(self) -> Iterator[Row]:
        yield from self._former
        yield from self._latest

    def add(self, row: Row) -> None:
        """Adds what came last; one of those before may go."""
        self._latest.append(row)
        if len(self._latest) <= self._n_latest:
            return
        row, self._n_before = self._latest.popleft(), self._n_before + 1
        if len(self._former) < self._n_former:
            self._former.append(row)
        elif (place := self._draws.randrange(self._n_before)) < self._n_former:
            del self._former[place]
            self._former.append(row)


_SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)
"""What belongs to the program, not to one object of it."""
_BESIDE_TENSORS, _BESIDE_ARRAYS = 500, 40
"""Bytes beside its numbers that Python does not see: by how much a process grew with 100,000 of them, to ten."""


def held_bytes(root: Any) -> int:
    """Returns the bytes of an object and of all that can be reached from it, each counted once.

    Example:
        >>> import torch
        >>> held_bytes({"a": torch.zeros(1000), "b": np.zeros(1000)}) // 4000
        3
    """
    seen: set[int] = set()
    storages: dict[int, int] = {}
    size, pending = 0, [root]
    while pending:
        found = list({id(one): one for one in pending if id(one) not in seen and _is_own(one)}.values())
        seen.update(map(id, found))
        size += sum(map(_own_bytes, found))
        numbers = [one.untyped_storage() for one in found if isinstance(one, Tensor)]
        storages.update((storage.data_ptr(), storage.nbytes()) for storage in numbers)
        bases = [one.base for one in found if isinstance(one, np.ndarray) and one.base is not None]
        held = [one.__closure__ if isinstance(one, types.FunctionType) else one for one in found]
        pending = [*gc.get_referents(*held), *bases]
    return size + sum(storages.values())


def _is_own(one: Any) -> bool:
    # a function that was made inside another holds its variables: rows, in the steps of a journal
    return not isinstance(one, _SHARED) or (isinstance(one, types.FunctionType) and one.__closure__ is not None)


def _own_bytes(one: Any) -> int:
    if isinstance(one, Tensor):
        return object.__sizeof__(one) + _BESIDE_TENSORS * (2 if one._is_view() else 1)  # a view holds another tensor
    size = sys.getsizeof(one) + (_BESIDE_ARRAYS if isinstance(one, np.ndarray) else 0)
    return (size // 16 + 1) * 16  # as allocators give it out, with a word of their own
