"""A line on standard error that says how far a long call of `fit` is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cndpm.model.cndpm import CNDPM

__all__ = ["progress_of"]

_AFTER = 1.0
"""Seconds after which a call is long."""
_TERMINAL, _FILE = 0.2, 10.0
"""Seconds between two lines, where the last one is written over, and where all stay."""
_WIDTH = 24


@contextmanager
def progress_of(learner: CNDPM, n_samples: int, *, verbose: bool) -> Iterator[Callable[[int], None] | None]:
    """Gives what is to be called with the number of samples learned so far; None unless `verbose`.

    Args:
        learner: Whose experts are counted.
        n_samples: Samples of the call.
        verbose: Whether anything is shown.
    """
    if not verbose:
        yield None
        return
    is_terminal, began = sys.stderr.isatty(), time.monotonic()
    shown = began + _AFTER - (_TERMINAL if is_terminal else _FILE)
    end = "\r" if is_terminal else "\n"

    def advance(n: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= (_TERMINAL if is_terminal else _FILE):
            shown = now
            print(_line(n, n_samples, learner.n_experts, now - began), end=end, file=sys.stderr, flush=True)

    yield advance
    if time.monotonic() - began > _AFTER:
        print(_line(n_samples, n_samples, learner.n_experts, time.monotonic() - began), file=sys.stderr, flush=True)


def _line(n: int, n_samples: int, n_experts: int, seconds: float) -> str:
    """Returns one line of a width that depends on the number of samples alone.

    Example:
        >>> _line(500, 2000, 1, 3.0)
        '[######                  ]    500 of 2,000 samples,   1 expert,  0:03, 0:09 left'
    """
    share = n / n_samples
    total = f"{n_samples:,}"
    left = f", {_clock(seconds * (1 - share) / share)} left" if share < 1 else " " * 11
    experts = "expert, " if n_experts == 1 else "experts,"
    bar = ("#" * int(_WIDTH * share)).ljust(_WIDTH)
    return (
        f"[{bar}] {f'{n:,}'.rjust(len(total) + 1)} of {total} samples, {n_experts:3} {experts} {_clock(seconds)}{left}"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"
