"""The number of threads for the size of the work.

A step of a stream is hundreds of operations on a few numbers. Shared among threads each of them costs a wait for the
slowest, and where cores are busy with something else that wait is a turn of the scheduler: steps take ten times as
long. So the package learns and answers in one thread, and spreads single pieces of work that are worth it over as many
as torch was told to use.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

_WORTH_SPREADING = 1e9
"""Multiplications from which torch's threads share an operation, which they do in many small regions: about a tenth of
a second of one core."""

_WORTH_A_THREAD = 3e8
"""Multiplications from which samples are shared among a pool of threads, which wait for each other only once."""


class _Allowance(threading.local):
    """Threads that torch had been told to use when this thread entered :func:`one_thread`; None outside."""

    n_threads: int | None = None
    is_new = True


_allowance = _Allowance()
_inside: dict[int, int] = {}
"""By thread: how many threads torch had been told to use when it entered :func:`one_thread`."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Has torch use one thread inside, and as many as before outside; may be nested."""
    allowed, n_threads = _allowance.n_threads, _n_threads()
    try:  # from before the first change on: an exception may arrive anywhere
        if allowed is None:
            _inside[threading.get_ident()] = n_threads
        _allowance.n_threads = allowed or n_threads
        torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(n_threads)
        _allowance.n_threads = allowed
        if allowed is None:
            _inside.pop(threading.get_ident(), None)


def _n_threads() -> int:
    """Returns how many threads torch uses in this thread.

    A thread that is new to torch begins with the number that was set last, in whichever thread: while another one is
    inside :func:`one_thread` that is one. It is told what the other one had been told.
    """
    n_threads = torch.get_num_threads()
    if _allowance.is_new:
        _allowance.is_new = False
        if n_threads == 1:
            n_threads = max(list(_inside.values()), default=1)
    return n_threads


class _OneBlasThread:
    """Has the linear algebra of numpy and scipy use one thread inside; the last to leave restores what was before.

    An exception may arrive anywhere, and a process be forked: what one has settled can be settled again, and there is
    no lock that could be left behind. threadpoolctl lets the first of Python's threads alone change the number, and
    says nothing to others; that they do not undo each other's changes is what we count for.
    """

    def __init__(self) -> None:
        self._inside: dict[int, dict[int, int]] = {}  # how often, by process and thread
        self._settling: dict[int, int] = {}  # which thread, by process
        self._before: dict[int, int] = {}  # threads of a library, by its number

    def __enter__(self) -> None:
        self._settle(1)

    def __exit__(self, *_: object) -> None:
        self._settle(-1)

    def _settle(self, step: int, n: int | None = None) -> None:
        process, me = os.getpid(), threading.get_ident()
        inside = self._inside.setdefault(process, {})
        n = inside.get(me, 0) if n is None else n
        try:
            while self._settling.setdefault(process, me) != me:
                time.sleep(0)
            inside[me] = n + step
            if n + step < 1:
                del inside[me]
            for number, library in enumerate(_blas_libraries()):
                now = library.get_num_threads()
                if now != (wanted := 1 if inside else self._before.get(number, now)):
                    self._before[number] = now
                    if hasattr(library, "clear_controlling_thread"):
                        library.clear_controlling_thread(force=True)
                    library.set_num_threads(wanted)
            self._settling.pop(process, None)
        except BaseException:
            self._settle(min(step, 0), n)  # without having entered, or having left
            raise


@cache
def _blas_libraries() -> list[Any]:
    import scipy.linalg  # noqa: F401  has libraries of its own

    return [one for one in ThreadpoolController().lib_controllers if one.user_api == "blas"]


one_blas_thread = _OneBlasThread()


@contextmanager
def spread(n_multiplications: float) -> Iterator[None]:
    """Allows all threads inside :func:`one_thread` for work that is large enough."""
    if (n_threads := _allowance.n_threads or 1) == 1 or n_multiplications < _WORTH_SPREADING:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def allowed_threads() -> int:
    """Returns how many threads torch was told to use."""
    return _allowance.n_threads or torch.get_num_threads()


def map_in_threads(
    function: Callable[[Tensor], Tensor], x: Tensor, *, part_size: int, n_multiplications: float
) -> Tensor:
    """Returns function(x) of samples (n, ...) on a CPU, part by part in all allowed threads; torch uses one in each.

    Parts have at most `part_size` samples, fewer where the threads need more; one takes about `n_multiplications`.
    """
    n_threads = allowed_threads() if n_multiplications * len(x) >= _WORTH_A_THREAD else 1
    parts: Sequence[Tensor] = torch.split(x, max(1, min(part_size, -(-len(x) // n_threads))))
    if n_threads < 2 or len(parts) < 2:
        if _allowance.n_threads is not None and torch.get_num_threads() == 1:  # inside one_thread()
            return torch.cat(list(map(function, parts)))
        with one_thread():
            return torch.cat(list(map(function, parts)))
    with ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,)) as threads:
        return torch.cat(list(threads.map(function, parts)))
