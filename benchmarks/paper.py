"""Runs of the paper's tables that no record holds: as many as fit into some minutes of one machine, the cheapest first.

    python -m benchmarks.paper                               # what is missing, what it costs, in which parts
    python -m benchmarks.paper --run --data-dir DATA --out OUT --commit COMMIT [--only cndpm,split-cifar10]

A part is ``--minutes`` of ``--jobs`` runs at a time. Every run that ends is at once a line of ``OUT/paper.jsonl``,
which belongs into ``docs/results/records``; one that the end of a part stops goes on from its checkpoint in OUT with
the next command. A learner's settings are changed with ``--set``; such runs are lines as well, and fill no cell.
"""

from __future__ import annotations

import argparse
import math
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from figures.collecting import lines
from figures.facts import append
from figures.missing import MissingRuns, missing_runs

__all__ = ["Job", "Runner", "main", "planned"]

ROOT = Path(__file__).resolve().parent.parent
_START = 20.0
"""Seconds under which no run is begun."""


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        missing: The cell that it belongs to.
        seed: Its seed.
    """

    missing: MissingRuns
    seed: int

    def words(self) -> list[str]:
        """Returns the words behind ``cndpm`` that run it."""
        cell, options = self.missing.cell, dict(self.missing.cell.options)
        words = ["run", cell.scenario, "--learner", cell.learner, "--preset", "paper", "--seed", str(self.seed)]
        settings = [*cell.overrides]
        if (batch_size := options.pop("batch_size", 10)) != 10:
            settings.append(f"scenario.batch_size={batch_size}")
        words += [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return words + [word for setting in settings for word in ("--set", setting)]


def planned(missing: Sequence[MissingRuns], room: float) -> Iterator[tuple[int | None, Job]]:
    """Yields missing runs in their order, each with the number of the part in which it would end.

    Args:
        missing: The cheapest first.
        room: Seconds of runs in a part.

    Returns:
        None for the part of a run whose like was never measured.
    """
    used = 0.0
    for one in missing:
        for seed in one.seeds:
            used += one.seconds or 0.0
            yield None if one.seconds is None else math.ceil(used / room), Job(one, seed)


class Runner:
    """Carries out runs side by side until the time is over, and writes down each that ends.

    Args:
        options: Of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._lock = options, Lock()
        self._end = time.monotonic() + 60 * options.minutes
        self.n_done = 0

    def run(self, jobs: Sequence[Job]) -> None:
        """Runs jobs, so many at a time, in their order."""
        self._options.out.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(self._options.jobs) as pool:
            list(pool.map(self._one, jobs))

    def _one(self, job: Job) -> None:
        left = self._end - time.monotonic()
        if left < _START:
            return
        folder = self._options.out / "runs" / job.missing.name / f"{job.seed}"
        few = ["--set", "run.evaluations=0", "--set", "run.evaluation_samples=1000"]
        changed = [word for setting in self._options.set for word in ("--set", setting)]
        own = ["--device", self._options.device, "--quiet", "--resume", "--out", str(folder)]
        data = ["--data-dir", str(self._options.data_dir)] if self._options.data_dir else []
        words = [sys.executable, "-m", "cndpm", *job.words(), *changed, *few, *own, *data]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=left, check=False)
        except subprocess.TimeoutExpired:
            print(f"{job.missing.name}, seed {job.seed}: stopped, goes on with the next part", flush=True)
            return
        if done.returncode:
            print(f"{job.missing.name}, seed {job.seed}: {done.stderr[-2000:]}", flush=True)
            return
        with self._lock:
            facts = {"commit": self._options.commit} if self._options.commit else {}
            append(self._options.out / "paper.jsonl", lines([folder], **facts))
            self.n_done += 1


def _chosen(missing: Sequence[MissingRuns], only: str) -> list[MissingRuns]:
    names = {name for name in only.split(",") if name}
    return [one for one in missing if not names or {one.cell.learner, one.cell.scenario, one.name} & names]


def main(arguments: Sequence[str] | None = None) -> None:
    """Shows or runs what is missing.

    Args:
        arguments: Of the command line; None: those of this process.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    parser.add_argument("--run", action="store_true", help="run it; else it is shown")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--jobs", type=int, default=12, help="runs at a time")
    parser.add_argument("--only", default="", help="learners, scenarios or cells")
    parser.add_argument("--set", action="append", default=[], help="of every run, as for cndpm run")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/paper-cells"))
    parser.add_argument("--commit", help="of the source, where no repository is about it")
    options = parser.parse_args(arguments)
    room = 60 * options.minutes * options.jobs
    plan = list(planned(_chosen(missing_runs(ROOT), options.only), room))
    if options.run:
        runner = Runner(options)
        runner.run([job for _, job in plan])
        print(f"{options.out / 'paper.jsonl'}: {runner.n_done} more runs")
        return
    for part, job in plan:
        seconds = "not measured" if job.missing.seconds is None else f"{job.missing.seconds:,.0f} s"
        print(f"part {part or '?'}, {seconds}: cndpm {shlex.join(job.words())}")


if __name__ == "__main__":
    main()
