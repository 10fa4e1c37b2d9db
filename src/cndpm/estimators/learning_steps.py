"""Changes of a learner that estimators make, as steps that can be done again, and draws from it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor

from cndpm.estimators.arrays import admit_number, whole_number
from cndpm.estimators.journal import Between, Step
from cndpm.model.cndpm import CNDPM

_AFTER = 1.0
"""Seconds after which a call is long."""
_TERMINAL, _FILE = 0.2, 10.0
"""Seconds between two lines, where the last one is written over, and where all stay."""
_WIDTH = 24


@contextmanager
def progress_of(learner: CNDPM, n_samples: int, *, verbose: bool) -> Iterator[Callable[[int], None] | None]:
    """Gives what is to be called with the number of samples learned so far; None unless `verbose`."""
    began = time.monotonic()
    pause, end = (_TERMINAL, "\r") if sys.stderr.isatty() else (_FILE, "\n")
    due = began + _AFTER

    def advance(n: int) -> None:
        nonlocal due
        if (now := time.monotonic()) >= due:
            due = now + pause
            print(_line(n, n_samples, learner.n_experts, now - began), end=end, file=sys.stderr, flush=True)

    yield advance if verbose else None
    if verbose and time.monotonic() - began > _AFTER:
        print(_line(n_samples, n_samples, learner.n_experts, time.monotonic() - began), file=sys.stderr, flush=True)


def _line(n: int, n_samples: int, n_experts: int, seconds: float) -> str:
    """Returns one line; later ones cover it."""
    share, total = n / n_samples, f"{n_samples:,}"
    left = f", {_clock(seconds * (1 - share) / share)} left" if n < n_samples else " " * 11
    bar, done = ("#" * int(_WIDTH * share)).ljust(_WIDTH), f"{n:,}".rjust(len(total) + 1)
    return f"[{bar}] {done} of {total} samples, experts: {n_experts}, {_clock(seconds)}{left}"


def _clock(seconds: float) -> str:
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"


def learning(x: Tensor, y: Tensor | None, batch_size: int, *, verbose: bool = False) -> Step:
    """Returns the step that learns samples, which nobody else changes, batch by batch."""

    def run(learner: CNDPM, between: Between | None) -> None:
        with progress_of(learner, len(x), verbose=verbose) as advance:
            learner.learn_block(x, y, batch_size, after_batch=_both(between, advance))

    return Step(run, n_bytes=_n_bytes(x, y))


def _both(first: Between | None, second: Between | None) -> Between | None:
    """Returns what calls two functions, of which there may be none."""
    if first is None or second is None:
        return first or second

    def call(n: int) -> None:
        first(n)
        second(n)

    return call


def pruning(x: Tensor, y: Tensor | None, threshold: float) -> Step:
    """Returns the step that removes experts which are redundant on given data; it returns the merges."""
    least = admit_number(threshold, "threshold")
    return Step(lambda learner, _: learner.prune(x, y, threshold=least), n_bytes=_n_bytes(x, y))


def consolidate(learner: CNDPM) -> None:
    """Sleeps on what waits in the memory, and makes answers exact until more is learned."""
    learner.consolidate()
    learner.finish()


def draw(learner: CNDPM, n_samples: int, random_state: int) -> tuple[Tensor, Tensor | None, Tensor]:
    """Draws samples; see :meth:`cndpm.model.cndpm.CNDPM.sample`."""
    n = whole_number(n_samples, "n_samples", least=1, most=1 << 31)
    return learner.sample(n, seed=whole_number(random_state, "random_state", least=0, most=(1 << 63) - 1))


def _n_bytes(x: Tensor, y: Tensor | None) -> int:
    return x.nbytes + (0 if y is None else y.nbytes)
