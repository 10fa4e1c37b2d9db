"""Changes of a learner as steps that can be done again, so that one can be undone without copying the learner first.

A learner that is taken from its state goes on to the same bits as one that was never saved. So the journal holds a
state, now and then, and the steps since; a learner in which a step was broken off is made anew of the state and of the
steps that were done. The state is taken when the steps since the last one took eighty times as long as taking it, so
both the cost of a journal and the time that undoing takes are bounded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cndpm.estimators.arrays import admit_number
from cndpm.model.cndpm import CNDPM
from cndpm.state import State, copied

_RATIO = 80.0
"""Seconds of steps for each second of taking a state."""

_MOST_BYTES = 1 << 26
"""Bytes of samples that steps may hold, together, when a call ends."""

_REPEATED = 4000
"""Samples that are made at once of those that are repeated."""

Between = Callable[[int], None]
"""Called between two batches with the number of samples learned so far."""


@dataclass(frozen=True)
class Step:
    """A change of a learner that can be done again."""

    run: Callable[[CNDPM, Between | None], Any]  # does it; calls its second argument between batches
    n_bytes: int = 0  # bytes of the samples that `run` holds


class Journal:
    """Holds a learner's state at some time and the steps since.

    It `is_whole` but while a batch is being learned, and if it was broken off; `before` are the attributes of the
    estimator before the step that is under way; `n_done` are the steps done in all, those before its state included.
    """

    def __init__(self, learner: CNDPM, n_before: int = 0) -> None:
        began = time.perf_counter()
        self._state: State = learner.state_dict()
        self._cost = time.perf_counter() - began
        self._seconds, self._n_bytes, self._n_before = 0.0, 0, n_before
        self._log: list[Step] = []
        self.n_done = n_before
        self.is_whole = True
        self.before: dict[str, Any] | None = None
        self._mark = _mark(learner)

    @property
    def is_pending(self) -> bool:
        """Whether a step was begun that is not done."""
        return self._n_before + len(self._log) > self.n_done

    @property
    def is_heavy(self) -> bool:
        """Whether steps hold more samples than should be kept."""
        return self._n_bytes > _MOST_BYTES

    def is_due(self, learner: CNDPM) -> bool:
        """Returns whether a new journal should take the place of this one before the next step.

        So it should when doing the steps again would take long, and when the learner was changed by other means.
        """
        return self._seconds > _RATIO * self._cost or _mark(learner) != self._mark

    def begin(self, step: Step, before: dict[str, Any]) -> None:
        """Takes note of a step that is about to be done."""
        self.before = before
        self._log.append(step)
        self.is_whole = False

    def commit(self, learner: CNDPM, seconds: float) -> None:
        """Takes note that the step is done."""
        mark = _mark(learner)
        self.n_done = self._n_before + len(self._log)  # from here on the step counts as done, whatever arrives next
        self.is_whole, self.before, self._mark = True, None, mark
        self._seconds += seconds
        self._n_bytes += self._log[-1].n_bytes

    def restore(self, learner: CNDPM) -> None:
        """Brings a learner that was just made to where the last step that is done has left the other one."""
        learner.load_state_dict(copied(self._state))  # it may go on with tensors that it is given
        for step in self._log[: self.n_done - self._n_before]:
            step.run(learner, None)

    def without_pending(self) -> Journal:
        """Returns a journal in which the step that was broken off was never begun."""
        journal = copy(self)
        journal._log, journal.is_whole, journal.before = self._log[: self.n_done - self._n_before], True, None
        return journal


def _mark(learner: CNDPM) -> tuple[int, int, int]:
    """Returns a few numbers of which learning, pruning and consolidating change at least one."""
    return learner.events.n_samples, len(learner.events.share), learner.memory.size


def learning(
    x: Tensor, y: Tensor | None, batch_size: int, times: NDArray[np.int64] | None = None, *, verbose: bool = False
) -> Step:
    """Returns the step that learns samples, which nobody else changes, batch by batch; each so many `times`."""

    def run(learner: CNDPM, between: Between | None) -> None:
        told = progress_of(learner, len(x) if times is None else int(times.sum()), between) if verbose else None
        with told or nullcontext(between) as after_batch:
            if times is None:
                learner.learn_block(x, y, batch_size, after_batch=after_batch)
            else:
                _learn_repeated(learner, x, y, batch_size, times, after_batch)

    return Step(run, x.nbytes + (0 if y is None else y.nbytes))


def _learn_repeated(
    learner: CNDPM, x: Tensor, y: Tensor | None, batch_size: int, times: NDArray[np.int64], between: Between | None
) -> None:
    """Repeats samples as they are learned, some at once: a heavy one takes no more memory than a light one."""
    ends, size = times.cumsum(), batch_size * max(1, _REPEATED // batch_size)
    for begin in range(0, int(ends[-1]), size):
        at = np.searchsorted(ends, np.arange(begin, min(begin + size, ends[-1])), side="right")
        told = None if between is None else lambda n, begin=begin: between(begin + n)
        learner.learn_block(x[at], None if y is None else y[at], batch_size, after_batch=told)


def pruning(x: Tensor, y: Tensor | None, threshold: float) -> Step:
    """Returns the step that removes experts which are redundant on given data; it returns the merges."""
    least = admit_number(threshold, "threshold")
    return Step(lambda learner, _: learner.prune(x, y, threshold=least), x.nbytes + (0 if y is None else y.nbytes))


def consolidate(learner: CNDPM) -> None:
    """Sleeps on what waits in the memory, and makes answers exact until more is learned."""
    learner.consolidate()
    learner.finish()


_AFTER = 1.0
"""Seconds after which a call is long."""
_TERMINAL, _FILE = 0.2, 10.0
"""Seconds between two lines, where the last one is written over, and where all stay."""
_WIDTH = 24


@contextmanager
def progress_of(learner: CNDPM, n_samples: int, between: Between | None) -> Iterator[Between]:
    """Gives what is to be called with the number of samples learned so far."""
    began = time.monotonic()
    pause, end = (_TERMINAL, "\r") if sys.stderr.isatty() else (_FILE, "\n")
    due = began + _AFTER

    def advance(n: int) -> None:
        nonlocal due
        if between is not None:
            between(n)
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
