"""A stopwatch that tells learning from everything else that a run does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
