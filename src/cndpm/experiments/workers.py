"""Carries out runs at the same time, each in a process of its own.

A run depends on nothing but its configuration, so where it takes place changes nothing in it: the results are the
same bits as one after another (on a CPU, with as many threads). A fresh process per run keeps it so, and one that
fails, or that the system kills, takes no other with it. Workers tell the parent what their monitors would have been
told.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch

from cndpm.errors import CNDPMError
from cndpm.experiments.config import RunConfig
from cndpm.experiments.loop import run_config
from cndpm.experiments.monitor import Monitor
from cndpm.experiments.record import SUMMARY

__all__ = ["Job", "LostWorkerError", "RunsFailedError", "run_jobs"]

_TOLD_SECONDS = 0.2
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """One run and the folder of its record.

    Attributes:
        config: What to run.
        folder: Where its record goes.

    Example:
        >>> from cndpm.experiments.config import configure
        >>> Job(configure("split-digits", learner="slda", device="cpu"), Path("runs/mine/seed-0")).config.learner
        'slda'
    """

    config: RunConfig
    folder: Path


class LostWorkerError(CNDPMError, RuntimeError):
    """A process ended without saying why; its run goes on from the last checkpoint when resumed."""


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
    data_dir: str | Path | None = None,
    resume: bool = False,
    watch: Callable[[Path], Monitor] = lambda _: Monitor(),
    command: str | None = None,
) -> list[dict[str, Any]]:
    """Carries out runs, `n_workers` at a time; with one, in this process, one after another.

    Args:
        jobs: The runs; of two with the same folder only one is carried out.
        n_workers: Processes at the same time. Each computes with one thread unless OMP_NUM_THREADS says otherwise.
        data_dir: Where datasets lie.
        resume: Goes on with what was interrupted; what is complete is only read.
        watch: Gives the monitor of the run in a folder; it is told in this process.
        command: The command line that was typed, for the records.

    Returns:
        The summaries, in the order of `jobs`.

    Raises:
        RunsFailedError: Of several workers some failed; raised when all others have ended. In this process, the
            first error ends everything.
    """
    unique = {job.folder: job for job in jobs}
    here = [job for job in unique.values() if n_workers == 1 or (resume and (job.folder / SUMMARY).is_file())]
    options: dict[str, Any] = {"data_dir": data_dir, "resume": resume, "command": command}
    summaries = {job.folder: run_config(job.config, job.folder, monitor=watch(job.folder), **options) for job in here}
    elsewhere = deque(job for folder, job in unique.items() if folder not in summaries)
    outcomes = _run_elsewhere(elsewhere, n_workers, options, watch)
    failures = {folder: outcomes[folder] for folder in unique if isinstance(outcomes.get(folder), Exception)}
    if failures:
        raise RunsFailedError(failures, len(unique)) from next(iter(failures.values()))
    return [(summaries | outcomes)[job.folder] for job in jobs]


def _run_elsewhere(
    waiting: deque[Job], n_workers: int, options: Mapping[str, Any], watch: Callable[[Path], Monitor]
) -> dict[Path, Any]:
    """Returns, by folder, the summary of every run, or the error that ended it."""
    outcomes: dict[Path, Any] = {}
    running: dict[Connection, _Worker] = {}
    try:
        while waiting or running:
            while waiting and len(running) < n_workers:
                worker = _Worker(waiting.popleft(), options, watch)
                running[worker.connection] = worker
            for connection in wait(list(running)):
                worker = running[connection]  # type: ignore[index]  # all that is waited for are connections
                worker.listen()
                if worker.outcome is not None:
                    outcomes[worker.folder] = worker.outcome
                    del running[worker.connection]
    finally:
        for worker in running.values():
            worker.stop()
    return outcomes


class _Worker:
    """One run in a process of its own, as its parent sees it."""

    def __init__(self, job: Job, options: Mapping[str, Any], watch: Callable[[Path], Monitor]) -> None:
        self.folder = job.folder
        self.monitor = watch(job.folder)
        self.outcome: dict[str, Any] | Exception | None = None
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(job, dict(options), theirs), daemon=True)
        with _interrupts_held():
            self.process.start()
        theirs.close()  # so that the end of the process is the end of what can be received

    def listen(self) -> None:
        """Takes the next message: something for the monitor, or the outcome."""
        try:
            name, arguments, options = self.connection.recv()
        except (EOFError, OSError):  # it ended between messages, or within one
            self.process.join()
            self._end(LostWorkerError(f"its process ended with exit code {self.process.exitcode}"))
            return
        if name == "outcome":
            self._end(*arguments)
        else:
            getattr(self.monitor, name)(*arguments, **options)

    def stop(self) -> None:
        """Ends the process at once: its record holds all up to the last checkpoint, as after any crash."""
        self.process.terminate()
        self._end(None)

    def _end(self, outcome: dict[str, Any] | Exception | None) -> None:
        self.process.join()
        self.connection.close()
        self.monitor.close()
        self.outcome = outcome


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keeps Ctrl-C, which a terminal sends to all, from processes started here: their parent stops them.

    Windows has no masks of signals; there the processes see it too, and end with a trace of their own.
    """
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # started with the first process, it would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(job: Job, options: dict[str, Any], connection: Connection) -> None:
    """Carries out the run and sends its outcome to the parent."""
    if not any(name in os.environ for name in _THREAD_VARIABLES):
        torch.set_num_threads(1)
    outcome: dict[str, Any] | Exception
    try:
        outcome = run_config(job.config, job.folder, monitor=_Messenger(connection), **options)
    except Exception as error:
        outcome = _portable(error)
    with suppress(BrokenPipeError):  # the parent is gone, and that is why the run has ended
        connection.send(("outcome", (outcome,), {}))


def _portable(error: Exception) -> Exception:
    """Adds the trace in words, which survive the way to another process; an error that cannot go there is described."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


class _Messenger(Monitor):
    """Passes everything on to the parent, but what happens with every batch only now and then.

    A parent that is gone breaks the connection, and with it the run: no worker stays behind.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._told_at = 0.0

    def started(self, title: str, *, step: int, n_batches: int) -> None:
        """Passes on."""
        self._tell("started", title, step=step, n_batches=n_batches)

    def learned(self, step: int) -> None:
        """Passes on, now and then."""
        self._tell_at_times("learned", step)

    def phase(self, name: str, fraction: float) -> None:
        """Passes on, now and then."""
        self._tell_at_times("phase", name, fraction)

    def progressed(self, row: dict[str, Any]) -> None:
        """Passes on."""
        self._tell("progressed", row)

    def evaluated(self, row: dict[str, Any]) -> None:
        """Passes on."""
        self._tell("evaluated", row)

    def finished(self, summary: dict[str, Any]) -> None:
        """Passes on."""
        self._tell("finished", summary)

    def _tell_at_times(self, name: str, *arguments: Any) -> None:
        now = time.monotonic()
        if now - self._told_at > _TOLD_SECONDS:
            self._told_at = now
            self._tell(name, *arguments)

    def _tell(self, name: str, *arguments: Any, **options: Any) -> None:
        self._connection.send((name, arguments, options))
