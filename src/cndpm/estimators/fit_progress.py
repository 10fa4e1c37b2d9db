"""A line on standard error that says how far a long call of `fit` is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cndpm.model.cndpm import CNDPM

_AFTER = 1.0
"""Seconds after which a call is long."""
_TERMINAL, _FILE = 0.2, 10.0
"""Seconds between two lines, where the last one is written over, and where all stay."""
_WIDTH = 24


@contextmanager
def progress_of(learner: CNDPM, n_samples: int) -> Iterator[Callable[[int], None]]:
    """Gives what is to be called with the number of samples learned so far."""
    began = time.monotonic()
    pause, end = (_TERMINAL, "\r") if sys.stderr.isatty() else (_FILE, "\n")
    due = began + _AFTER

    def advance(n: int) -> None:
        nonlocal due
        if (now := time.monotonic()) >= due:
            due = now + pause
            print(_line(n, n_samples, learner.n_experts, now - began), end=end, file=sys.stderr, flush=True)

    yield advance
    if time.monotonic() - began > _AFTER:
        print(_line(n_samples, n_samples, learner.n_experts, time.monotonic() - began), file=sys.stderr, flush=True)


def _line(n: int, n_samples: int, n_experts: int, seconds: float) -> str:
    """Returns one line; later ones cover it."""
    share, total = n / n_samples, f"{n_samples:,}"
    left = f", {_clock(seconds * (1 - share) / share)} left" if n < n_samples else " " * 11
    bar, done = ("#" * int(_WIDTH * share)).ljust(_WIDTH), f"{n:,}".rjust(len(total) + 1)
    return f"[{bar}] {done} of {total} samples, experts: {n_experts}, {_clock(seconds)}{left}"


def _clock(seconds: float) -> str:
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"
