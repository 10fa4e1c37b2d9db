"""Schedules when a run evaluates and logs: at the end of every stage, and at points spread evenly over the stream.

A clock tells learning from everything else that a run does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from cndpm.streams import Stream
from cndpm.validation import ConfigError

ENDLESS = (
    "this stream does not say where it ends; say when to stop with --set run.max_batches=N, from Python with "
    "RunSettings(max_batches=N)"
)
"""The message for a stream without an end where no limit is given."""


@dataclass(frozen=True)
class RunSchedule:
    """Steps count learned batches: step 1 is after the first batch."""

    n_batches: int  # where the run ends
    stage_ends: frozenset[int]  # steps after which a stage is over, the last one of the run included
    # Steps to evaluate after; the end is not among them, it is evaluated when the learner has finished
    evaluations: frozenset[int]
    log_points: frozenset[int]  # steps to write a line of progress after, the ends of stages among them

    @classmethod
    def of(cls, stream: Stream, *, n_batches: int, evaluations: int, log_points: int) -> RunSchedule:
        """Makes the schedule of a run over the first `n_batches` batches of a stream."""
        ends = {i for i in range(1, n_batches) if stream.stage_of(i) != stream.stage_of(i - 1)} | {n_batches}
        return cls(
            n_batches=n_batches,
            stage_ends=frozenset(ends),
            evaluations=frozenset(ends | evenly_spaced(n_batches, evaluations)) - {n_batches},
            log_points=frozenset(ends | evenly_spaced(n_batches, log_points)),
        )


def run_length(stream: Stream, max_batches: int | None) -> int:
    """Returns the most batches that a run takes from a stream; ConfigError where neither says where to end."""
    limits = [n for n in (stream.n_batches, max_batches) if n is not None]
    if not limits:
        raise ConfigError(ENDLESS)
    return min(limits)


def window_size(n_samples: int) -> int:
    """Returns the samples of a prequential window: 100, or more where that makes over 200 windows."""
    return max(100, -(-n_samples // 200))


def evenly_spaced(n_batches: int, points: int) -> frozenset[int]:
    """Returns at most `points` steps from 1 to `n_batches`, evenly spaced, the last one included."""
    return frozenset(round(n_batches * (i + 1) / points) for i in range(points)) - {0}


class Clock:
    """Counts seconds spent learning; those spent inside :meth:`pause` are counted apart."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds = 0.0
        self.paused_seconds = 0.0
        self._since = time.perf_counter()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Adds the time since the last pause to `seconds`, and the time inside to `paused_seconds`."""
        self.seconds += self._lap()
        try:
            yield
        finally:
            self.paused_seconds += self._lap()

    def _lap(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        now = time.perf_counter()
        lap, self._since = now - self._since, now
        return lap
