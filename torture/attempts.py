"""Counts of attempts by outcome, and processes of their own in which attempts are made, so that a death is counted."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Count", "in_workers"]

_ROOT = Path(__file__).parents[1]
_PATIENCE = 120.0  # seconds without an answer
_MOST_DEATHS = 20  # after which there is nothing more to learn


@dataclass
class Count:
    """Counts outcomes, the slowest attempt, and keeps a line for every bad outcome.

    Args:
        bad: Outcomes that must not be.
    """

    bad: Sequence[str]
    counts: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    lines: list[str] = field(default_factory=list)

    def add(self, number: int, outcome: str, seconds: float = 0.0, detail: str = "") -> None:
        """Counts one attempt.

        Args:
            number: The attempt's number.
            outcome: One word.
            seconds: That it took.
            detail: What was done and what came of it.
        """
        self.counts[outcome] += 1
        self.slowest = max(self.slowest, seconds)
        if outcome in self.bad:
            self.lines.append(f"{outcome}: attempt {number}, {detail}")

    @property
    def n_bad(self) -> int:
        """Attempts with a bad outcome."""
        return sum(self.counts[outcome] for outcome in self.bad)

    def __str__(self) -> str:
        names = [*self.bad, *sorted(set(self.counts) - set(self.bad))]
        return ", ".join(f"{name} {self.counts[name]}" for name in names)


def in_workers(module: str, seed: int, n: int, count: Count) -> None:
    """Has a module make attempts 0 to n in a process; another one goes on behind the attempt that killed it.

    Args:
        module: Takes seed, first and last attempt; prints number, outcome, seconds and detail of each, with tabs.
        seed: Attempts are functions of the seed and their number.
        n: Number of attempts.
        count: Counts them; a death is the outcome "deaths".
    """
    number = 0
    while number < n and count.counts["deaths"] < _MOST_DEATHS:
        command = [sys.executable, "-m", module, str(seed), str(number), str(n)]
        paths = os.pathsep.join((str(_ROOT / "src"), str(_ROOT)))
        environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as worker:
            for line in _lines(worker):
                told, outcome, seconds, detail = line.split("\t", 3)
                count.add(int(told), outcome, float(seconds), detail)
                number = int(told) + 1
        if number < n:
            count.add(number, "deaths", 0.0, f"the process ended with {worker.returncode}")
            number += 1


def _lines(worker: subprocess.Popen[bytes]) -> Iterator[str]:
    """Yields the worker's lines until it ends; one that does not answer is ended."""
    assert worker.stdout is not None
    rest = b""
    while True:
        if not select.select([worker.stdout], [], [], _PATIENCE)[0]:
            worker.kill()
            return
        piece = os.read(worker.stdout.fileno(), 1 << 16)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line.decode() for line in lines)
