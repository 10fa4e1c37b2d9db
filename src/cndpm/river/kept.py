"""Rows that are kept so that a model can be founded anew on them: the latest, and some of all that came before."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["Kept"]

Row = TypeVar("Row")


class Kept(Generic[Row]):
    """Keeps everything until there is too much, then the latest half and a uniform sample of what came before it.

    Args:
        capacity: What is kept at most.
        seed: Of the sample.

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
