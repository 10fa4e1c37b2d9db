"""Damages small files of every format a great many times and counts how the readers of datasets take it.

    python -m torture.readers --n 100000 --seed 0
    python -m torture.readers --seed 0 --show 4711 --keep damaged   # writes one attempt's files, to look at

Files are read in a process of their own, so that its death is counted and named; another one goes on behind the file
that killed it. For each format the table counts

- deaths: the process ended, or did not answer for five minutes;
- foreign: an exception or a warning that is not the package's own left it;
- unnamed: an error of the package does not name the damaged file;
- silent: a changed file was read as other samples than before although its format has checksums of them (gzip,
  deflated MATLAB, npz, PNG) which do not fit any more;
- changed: other samples were read where nothing can tell: the format has no checksums, or they fit: they were made to,
  or the file was put together from parts that have one each;
- equal: the same samples as before were read; the damage was to something that does not matter;
- refused: everything else, with an error of the package that names the file.

Ends with 1 if any of the first four is not zero.
"""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["IN_MEMORY", "Tally", "attack", "attack_in_turns", "main", "start_worker", "table"]

Start = Callable[[int, int, int, str], "subprocess.Popen[bytes]"]

BAD = ("deaths", "foreign", "unnamed", "silent")
OUTCOMES = (*BAD, "changed", "equal", "refused")
_PATIENCE = 300.0  # seconds without an answer; on a busy machine making all victims takes a minute
_MOST_DEATHS = 100  # after which there is nothing more to learn
IN_MEMORY = Path("/dev/shm")  # files that are written and read a hundred thousand times need no disk
_ROOT = Path(__file__).parents[1]


@dataclass
class Tally:
    """Counts of outcomes by format, the slowest read, and a line for every bad outcome."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: float = 0.0
    bad: list[str] = field(default_factory=list)

    def add(self, name: str, number: int, outcome: str, seconds: float, detail: str) -> None:
        """Counts one attempt.

        Args:
            name: The format.
            number: The attempt's number.
            outcome: One of `OUTCOMES`.
            seconds: Of the processor, that it took.
            detail: What was done and what was said.
        """
        self.counts.setdefault(name, Counter())[outcome] += 1
        self.slowest = max(self.slowest, seconds)
        if outcome in BAD:
            self.bad.append(f"{outcome}: attempt {number}, {name}, {detail}")

    def total(self, outcome: str) -> int:
        """Returns the number of attempts with this outcome."""
        return sum(counts[outcome] for counts in self.counts.values())


def attack(seed: int, n: int) -> Tally:
    """Makes `n` attempts on the readers; the formats take turns.

    Args:
        seed: Attempts are functions of the seed and their number.
        n: Number of attempts.
    """
    from torture.formats import formats

    return attack_in_turns([each.name for each in formats()], seed, n, _start)


def attack_in_turns(names: Sequence[str], seed: int, n: int, start: Start) -> Tally:
    """Makes `n` attempts in processes that may die.

    Args:
        names: What is attacked, in turns.
        seed: Attempts are functions of the seed and their number.
        n: Number of attempts.
        start: Starts a process that makes those from one number to another, with files in a folder.
    """
    tally, number = Tally(), 0
    with TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        while number < n and tally.total("deaths") < _MOST_DEATHS:
            with start(seed, number, n, folder) as worker:
                for line in _lines(worker):
                    _, outcome, seconds, detail = line.split("\t", 3)
                    tally.add(names[number % len(names)], number, outcome, float(seconds), detail)
                    number += 1
            if number < n:
                detail = f"the process ended with {worker.returncode}"
                tally.add(names[number % len(names)], number, "deaths", 0.0, detail)
                number += 1
    return tally


def _start(seed: int, first: int, end: int, folder: str) -> subprocess.Popen[bytes]:
    return start_worker("torture.reader_worker", seed, first, end, folder)


def start_worker(module: str, *arguments: object) -> subprocess.Popen[bytes]:
    """Starts a process that is expected to die.

    Args:
        module: Is run.
        *arguments: On its command line.
    """
    paths = os.pathsep.join((str(_ROOT / "src"), str(_ROOT)))
    # Freed memory is overwritten, so that its use shows; one thread, so that the machine stays usable.
    environment = os.environ | {"PYTHONPATH": paths, "MALLOC_PERTURB_": "165", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


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


def table(tally: Tally) -> str:
    """Returns the counts as a Markdown table, one row per format."""
    header = ("format", "attempts", *OUTCOMES)
    rows = [(name, str(counts.total()), *(str(counts[o]) for o in OUTCOMES)) for name, counts in tally.counts.items()]
    sums = ("all", str(sum(c.total() for c in tally.counts.values())), *(str(tally.total(o)) for o in OUTCOMES))
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ("---",) * len(header), *rows, sums))


def _show(seed: int, number: int, keep: Path) -> None:
    """Writes the files of one attempt below `keep` and says how to read them."""
    from torture.formats import write_files
    from torture.reader_worker import damage

    chosen, content, _, done = damage(seed, number)
    write_files(chosen.files | {chosen.target: content}, keep)
    print(f"{chosen.name}, {done}: load_dataset({chosen.dataset!r}, {str(keep)!r}); damaged is {chosen.target}")


def main(arguments: list[str] | None = None) -> int:
    """Runs the attack that the arguments ask for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m torture.readers", description="Attack the readers of datasets.")
    parser.add_argument("--n", type=int, default=100_000, help="number of attempts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, metavar="NUMBER", help="write the files of one attempt instead")
    parser.add_argument("--keep", type=Path, default=Path("damaged"), help="where --show writes them")
    options = parser.parse_args(arguments)
    if options.show is not None:
        _show(options.seed, options.show, options.keep)
        return 0
    begin = time.perf_counter()
    tally = attack(options.seed, options.n)
    seconds = time.perf_counter() - begin
    print(table(tally))
    print(f"\nseed {options.seed}, {seconds:.0f} s in all, slowest read {tally.slowest:.3f} s of the processor")
    print("\n".join(tally.bad[:100]))
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
