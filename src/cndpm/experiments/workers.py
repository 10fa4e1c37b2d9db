"""Carries out runs at the same time, by an engine: processes of this machine, or a Ray cluster.

A run depends on nothing but its configuration, so where it takes place changes nothing in it. Workers tell the parent
what their monitors would have been told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from cndpm.engines.engine import Attempt, Engine
from cndpm.engines.local import opened_engine
from cndpm.errors import CNDPMError
from cndpm.experiments.config import RunConfig
from cndpm.experiments.loop import run_config
from cndpm.experiments.monitor import Monitor, Relay
from cndpm.experiments.record import SUMMARY

__all__ = ["RunsFailedError"]

_TOLD_SECONDS = 0.2


class SweepOptions(TypedDict, total=False):
    """Says how several runs are carried out."""

    data_dir: str | Path | None  # where datasets lie
    resume: bool  # skips runs that are complete and goes on with those that were interrupted
    monitor_of: Callable[[Path], Monitor]  # gives the monitor of the run in a folder
    jobs: int  # runs at the same time, each in a process of its own; 1 takes one after another in this process
    engine: str | Engine  # carries them out: "local", "ray", or an engine
    command: str | None  # the command line that was typed, for the records


@dataclass(frozen=True)
class Job:
    """One run and the folder of its record."""

    config: RunConfig  # what to run
    folder: Path  # where its record goes


class RunsFailedError(CNDPMError, RuntimeError):
    """Some of several runs failed; the others are complete.

    Args:
        failures: By the folder of a run, what went wrong there.
        n_runs: How many runs there were.
    """

    def __init__(self, failures: Mapping[Path, Exception], n_runs: int) -> None:
        self.failures = dict(failures)
        reasons: dict[str, list[str]] = {}
        for folder, error in failures.items():
            reasons.setdefault(str(error) or repr(error), []).append(str(folder))
        lines = [f"  {', '.join(folders)}: {reason}" for reason, folders in reasons.items()]
        head = f"{len(failures)} of {n_runs} runs failed; those that are complete stay, and resuming runs the others:"
        super().__init__("\n".join([head, *lines]))


def run_jobs(
    jobs: Sequence[Job],
    n_workers: int = 1,
    *,
    engine: str | Engine = "local",
    data_dir: str | Path | None = None,
    resume: bool = False,
    monitor_of: Callable[[Path], Monitor] = lambda _: Monitor(),
    command: str | None = None,
) -> list[dict[str, Any]]:
    """Carries out runs, `n_workers` at a time; returns their summaries in the order of `jobs`.

    One local worker takes them one after another in this process, where the first error ends everything.
    RunsFailedError: of several workers some failed; raised when all others have ended.
    """
    unique = {job.folder: job for job in jobs}
    is_here = n_workers == 1 and engine == "local"
    here = [job for job in unique.values() if is_here or (resume and (job.folder / SUMMARY).is_file())]
    options: dict[str, Any] = {"data_dir": data_dir, "resume": resume, "command": command}
    summaries = {
        job.folder: run_config(job.config, job.folder, monitor=monitor_of(job.folder), **options) for job in here
    }
    elsewhere = [job for folder, job in unique.items() if folder not in summaries]
    outcomes = _run_elsewhere(elsewhere, engine, n_workers, options, monitor_of) if elsewhere else {}
    failures = {folder: outcomes[folder] for folder in unique if isinstance(outcomes.get(folder), Exception)}
    if failures:
        raise RunsFailedError(failures, len(unique)) from next(iter(failures.values()))
    return [(summaries | outcomes)[job.folder] for job in jobs]


def _run_elsewhere(
    jobs: Sequence[Job],
    engine: str | Engine,
    n_workers: int,
    options: Mapping[str, Any],
    monitor_of: Callable[[Path], Monitor],
) -> dict[Path, Any]:
    """Returns, by folder, the summary of every run, or the error that ended it."""
    monitors: dict[int, Monitor] = {}

    def monitor(index: int) -> Monitor:
        if index not in monitors:
            monitors[index] = monitor_of(jobs[index].folder)
        return monitors[index]

    def told(index: int, message: Any) -> None:
        name, arguments, values = message
        getattr(monitor(index), name)(*arguments, **values)

    outcomes: dict[Path, Any] = {}
    data_dir = options["data_dir"]  # folders mean the same in every process, whatever its current folder is
    options = {**options, "data_dir": None if data_dir is None else Path(data_dir).absolute()}
    tasks = [(replace(job, folder=job.folder.absolute()), dict(options)) for job in jobs]
    with opened_engine(engine, n_workers, retries=0) as made:
        try:
            for index, outcome in made.outcomes(_run_one, tasks, told=told):
                outcomes[jobs[index].folder] = outcome
                monitor(index).close()
                del monitors[index]
        finally:
            for one in monitors.values():
                one.close()
    return outcomes


def _run_one(task: tuple[Job, dict[str, Any]], attempt: Attempt) -> dict[str, Any]:
    """Carries out one run in a worker; one that is begun again goes on from its last checkpoint."""
    job, options = task
    options["resume"] = options["resume"] or attempt.number > 0
    return run_config(job.config, job.folder, monitor=_Messenger(attempt.tell), **options)


class _Messenger(Relay):
    """Passes everything on to the parent, but what happens with every batch only now and then."""

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self._send = tell
        self._told_at = 0.0

    def tell(self, event: str, *arguments: Any, **values: Any) -> None:
        now = time.monotonic()
        is_frequent = event in ("learned", "phase")
        if event == "close" or (is_frequent and now - self._told_at <= _TOLD_SECONDS):
            return  # the parent closes its monitors itself
        self._told_at = now if is_frequent else self._told_at
        self._send((event, arguments, values))
