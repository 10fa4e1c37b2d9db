"""The one loop of all attacks: attempts by number, in processes that may die, with counts and time.

Every attack says in an :class:`Attack` what it counts and which module makes its attempts. That module has a function
``attempts(seed, first, end, folder, *arguments)``, which yields an :class:`Outcome` or more for every number from
`first` to `end` and works in a folder of its own. An attempt is a function of the seed and its number, so it can be
made again alone. All attacks take the same options:

    --n 1000 --seed 0        attempts 0 to 1000
    --from 200 --to 300      a part of them
    --jobs 16                in as many processes at a time
    --seconds 200            no longer than that; says how many attempts were made
    --only 4711              one attempt, whatever comes of it is printed
    --keep FOLDER            leaves the files of the attempts there
    --out RECORD             adds a line with the counts, command, commit and machine to a record
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from figures.facts import add_options, append, facts

__all__ = ["DEATHS", "Attack", "Count", "Outcome", "carry_out", "main", "scratch"]

DEATHS = "deaths"
"""The outcome of an attempt during which the process ended, or did not answer for five minutes."""

_ROOT = Path(__file__).parents[1]
_PATIENCE = 300.0  # seconds without an answer; on a busy machine making all victims takes a minute
_MOST_DEATHS = 100  # after which there is nothing more to learn
_SHOWN = 100  # lines of bad outcomes
_IN_MEMORY, _ENOUGH = Path("/dev/shm"), 1 << 30


class Outcome(NamedTuple):
    """What came of an attempt.

    Attributes:
        number: Of the attempt.
        name: One word.
        detail: What was done and what was said.
        times: How often.
    """

    number: int
    name: str
    detail: str = ""
    times: int = 1


@dataclass(frozen=True)
class Attack:
    """Says what is attempted and what must not come of it.

    Attributes:
        title: What is counted.
        worker: The module that makes the attempts.
        n: Attempts, if not told otherwise; a function where they must be counted first.
        bad: Outcomes that must not be; deaths are always among them.
        good: The others that are shown even if there are none.
        names: What is attacked in turn: attempt i is on ``names[i % len(names)]``.
        arguments: Further arguments of the worker.
    """

    title: str
    worker: str
    n: int | Callable[[], int]
    bad: tuple[str, ...]
    good: tuple[str, ...] = ()
    names: Sequence[str] = ()
    arguments: tuple[str, ...] = ()


@dataclass
class Count:
    """Counts outcomes, in all and by what is attacked, and keeps a line for every bad one.

    Args:
        attack: Whose outcomes.
        verbose: Whether every outcome is printed as it comes.
    """

    attack: Attack
    verbose: bool = False
    by_name: dict[str, Counter[str]] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)
    slowest: float = 0.0
    lines: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bad(self) -> tuple[str, ...]:
        """Outcomes that must not be."""
        return (DEATHS, *self.attack.bad)

    def add(self, outcome: Outcome, seconds: float = 0.0) -> None:
        """Counts one outcome.

        Args:
            outcome: What came of an attempt.
            seconds: Of the processor, that it took.
        """
        names = self.attack.names
        name = names[outcome.number % len(names)] if names else ""
        on = f" on {name}" if name else ""
        line = f"{outcome.name}: attempt {outcome.number}{on}, {outcome.detail}"
        with self._lock:
            self.made.add(outcome.number)
            self.by_name.setdefault(name, Counter())[outcome.name] += outcome.times
            self.slowest = max(self.slowest, seconds)
            if outcome.name in self.bad:
                self.lines.append(line)
        if self.verbose:
            print(line, flush=True)

    def total(self, outcome: str) -> int:
        """Returns how often an outcome came."""
        return sum(counts[outcome] for counts in list(self.by_name.values()))

    @property
    def n_bad(self) -> int:
        """Number of bad outcomes."""
        return sum(map(self.total, self.bad))

    @property
    def outcomes(self) -> tuple[str, ...]:
        """All outcomes that are shown, the bad ones first."""
        known = (*self.bad, *self.attack.good)
        return (*known, *sorted({name for counts in self.by_name.values() for name in counts} - set(known)))

    def __str__(self) -> str:
        return ", ".join(f"{name} {self.total(name):,}" for name in self.outcomes)

    def line(self) -> dict[str, Any]:
        """Returns the counts as a line of a record: in all, and by what is attacked."""
        counts = {outcome: self.total(outcome) for outcome in self.outcomes}
        told = {"attack": self.attack.title, "attempts": len(self.made), "harm": self.n_bad}
        by_name = {name: dict(counts) for name, counts in sorted(self.by_name.items()) if name}
        return told | counts | {"slowest_seconds": self.slowest, "by_name": by_name}

    def table(self) -> str:
        """Returns the counts as a Markdown table, a row for each name in the order of its first turn."""
        header = ("attacked", *self.outcomes)
        ordered = [name for name in dict.fromkeys(self.attack.names) if name in self.by_name]
        rows = [(name, *(str(self.by_name[name][outcome]) for outcome in self.outcomes)) for name in ordered]
        sums = ("all", *(str(self.total(outcome)) for outcome in self.outcomes))
        return "\n".join("| " + " | ".join(row) + " |" for row in (header, ("---",) * len(header), *rows, sums))


def carry_out(
    count: Count, seed: int, numbers: range, *, jobs: int = 1, seconds: float | None = None, keep: Path | None = None
) -> Count:
    """Makes attempts in processes; where one dies another goes on behind the attempt that killed it.

    Args:
        count: Counts them.
        seed: Attempts are functions of the seed and their number.
        numbers: Which attempts.
        jobs: Processes at a time, each with a part of the numbers.
        seconds: After which no more attempts are waited for.
        keep: Where files are left; they are removed otherwise.
    """
    until = time.monotonic() + seconds if seconds is not None else float("inf")
    cuts = [numbers.start + len(numbers) * job // jobs for job in range(jobs + 1)]
    with scratch(keep) as folder, ThreadPoolExecutor(jobs) as pool:
        parts = [pool.submit(_make, count, seed, range(*cut), until, folder) for cut in pairwise(cuts)]
        for part in parts:
            part.result()
    return count


def scratch(keep: Path | None = None) -> TemporaryDirectory[str] | _Kept:
    """Returns a folder to work in, in memory where there is enough: files are written and read very often."""
    if keep is not None:
        return _Kept(keep)
    in_memory = _IN_MEMORY.is_dir() and shutil.disk_usage(_IN_MEMORY).free > _ENOUGH
    return TemporaryDirectory(dir=_IN_MEMORY if in_memory else None)


@dataclass(frozen=True)
class _Kept:
    """A folder that stays."""

    path: Path

    def __enter__(self) -> str:
        self.path.mkdir(parents=True, exist_ok=True)
        return str(self.path)

    def __exit__(self, *_: object) -> None:
        pass


def _make(count: Count, seed: int, numbers: range, until: float, folder: str) -> None:
    """Makes some attempts, in one process after the other."""
    attack, number = count.attack, numbers.start
    place = Path(folder) / f"from-{numbers.start}"
    while number < numbers.stop and time.monotonic() < until and count.total(DEATHS) < _MOST_DEATHS:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        with _start(attack.worker, seed, number, numbers.stop, place, *attack.arguments) as worker:
            for line in _lines(worker, until):
                told, name, times, seconds, detail = line.split("\t", 4)
                count.add(Outcome(int(told), name, detail, int(times)), float(seconds))
                number = int(told) + 1
        if number < numbers.stop and time.monotonic() < until:
            count.add(Outcome(number, DEATHS, f"the process ended with {worker.returncode}"))
            number += 1


def _start(module: str, *arguments: object) -> subprocess.Popen[bytes]:
    """Starts a process that may die."""
    paths = os.pathsep.join((str(_ROOT / "src"), str(_ROOT), os.environ.get("PYTHONPATH", "")))
    # Freed memory is overwritten, so that its use shows; one thread, so that the machine stays usable.
    environment = os.environ | {"PYTHONPATH": paths, "MALLOC_PERTURB_": "165", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torture.worker", module, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


def _lines(worker: subprocess.Popen[bytes], until: float) -> Iterator[str]:
    """Yields the worker's lines until it ends; one that does not answer, or is not done in time, is ended."""
    assert worker.stdout is not None
    rest = b""
    while True:
        if not select.select([worker.stdout], [], [], max(0.0, min(_PATIENCE, until - time.monotonic())))[0]:
            worker.kill()
            return
        piece = os.read(worker.stdout.fileno(), 1 << 16)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line.decode() for line in lines)


def main(attack: Attack, arguments: Sequence[str] | None = None) -> int:
    """Carries out the attack that the arguments ask for and prints what came of it; returns the exit code.

    Args:
        attack: What is attempted.
        arguments: Of the command line.
    """
    options = _options(attack, arguments)
    numbers = range(options.first, options.n if options.end is None else options.end)
    began, count = time.perf_counter(), Count(attack, verbose=options.only is not None)
    carry_out(count, options.seed, numbers, jobs=options.jobs, seconds=options.seconds, keep=options.keep)
    if attack.names:
        print(count.table(), end="\n\n")
    tried = f"{len(count.made):,} of the attempts {numbers.start:,} to {numbers.stop:,}"
    print(f"{attack.title}: {tried}, seed {options.seed}: {count}")
    took = f"{time.perf_counter() - began:.0f} s in all, {options.jobs} at a time"
    print(f"{took}, the slowest took {count.slowest:.3f} s of the processor")
    print("\n".join(count.lines[:_SHOWN]))
    if options.out is not None:
        done = facts(commit=options.commit) | {"seed": options.seed, "first": numbers.start, "jobs": options.jobs}
        append(options.out, [done | count.line() | {"seconds": round(time.perf_counter() - began, 1)}])
    return 1 if count.n_bad else 0


def _options(attack: Attack, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=attack.title)
    parser.add_argument("--n", type=int, help="number of attempts")
    parser.add_argument("--seed", type=int, default=0, help="of which attempts are a function")
    parser.add_argument("--from", type=int, default=0, dest="first", help="first attempt")
    parser.add_argument("--to", type=int, dest="end", help="attempt behind the last one")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=float, help="ends the attack after so long")
    parser.add_argument("--only", type=int, help="makes this attempt alone and prints what comes of it")
    parser.add_argument("--keep", type=Path, help="leaves files in this folder")
    add_options(parser)
    options = parser.parse_args(arguments)
    if options.only is not None:
        options.first, options.end = options.only, options.only + 1
    elif options.n is None and options.end is None:
        options.n = attack.n() if callable(attack.n) else attack.n
    return options
