"""The engine of this machine, every task in a process of its own; and engines by name.

A task depends on nothing but what it is given, so where it takes place changes nothing in it: the results are the same
bits as one after another (on a CPU, with as many threads). A fresh process per task keeps it so, and one that fails, or
that the system kills, takes no other with it.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from cndpm.engines.engine import Attempt, Engine, Function, LostWorkerError
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_MESSAGE, _OUTCOME = "message", "outcome"


class LocalEngine(Engine):
    """Starts processes; each computes with one thread unless OMP_NUM_THREADS says otherwise."""

    def _begin(self, function: Function, task: Any, number: int) -> _Process:
        return _Process(function, task, number)

    def _wait(self, calls: Sequence[Any], told: Callable[[Any, Any], None]) -> list[tuple[Any, Any]]:
        by_connection = {call.connection: call for call in calls}
        ended = []
        for connection in wait(list(by_connection)):
            call = by_connection[connection]
            kind, content = call.receive()
            if kind == _OUTCOME:
                ended.append((call, content))
            else:
                told(call, content)
        return ended

    def _stop(self, call: _Process) -> None:
        call.stop()


class _Process:
    """One task in a process of its own, as its parent sees it."""

    def __init__(self, function: Function, task: Any, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(function, task, number, theirs), daemon=True)
        with _interrupts_held():
            self.process.start()
        theirs.close()  # so that the end of the process is the end of what can be received

    def receive(self) -> tuple[str, Any]:
        """Returns the kind and content of the next message; the outcome is the last one."""
        try:
            kind, content = self.connection.recv()
        except (EOFError, OSError):  # it ended between messages, or within one
            self.process.join()
            code = self.process.exitcode
            kind, content = _OUTCOME, LostWorkerError(f"its process ended with exit code {code}")
        if kind == _OUTCOME:
            self._end()
        return kind, content

    def stop(self) -> None:
        """Ends the process at once: what it has written stays, as after any crash."""
        self.process.terminate()
        self._end()

    def _end(self) -> None:
        self.process.join()
        self.connection.close()


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


def _work(function: Function, task: Any, number: int, connection: Connection) -> None:
    """Carries out the task and sends its outcome to the parent."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    one_thread_each()
    outcome: Any
    try:
        outcome = function(task, Attempt(number, lambda message: connection.send((_MESSAGE, message))))
    except Exception as error:
        outcome = portable(error)
    with suppress(BrokenPipeError):
        connection.send((_OUTCOME, outcome))


def _end_with_parent() -> None:
    """Ends this process when its parent does, however that ended: a worker left behind would write where others do."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def one_thread_each() -> None:
    """Has this process compute with one thread, unless its environment says otherwise."""
    if not any(name in os.environ for name in _THREAD_VARIABLES):
        torch.set_num_threads(1)


def portable(error: Exception) -> Exception:
    """Adds the trace in words, which survive the way to another process; an error that cannot go there is described."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


ENGINES = ("local", "ray")
"""The engines there are."""


@contextmanager
def opened_engine(name: str | Engine, n_workers: int, **options: Any) -> Iterator[Engine]:
    """Gives an engine: one that is given as it is, one that is named made for this and closed afterwards."""
    if isinstance(name, Engine):
        yield name
        return
    with closing(make_engine(name, n_workers, **options)) as made:
        yield made


def make_engine(
    name: str, n_workers: int, *, address: str | None = None, n_gpus: float = 0.0, retries: int = 2
) -> Engine:
    """Returns an engine: "local", processes of this machine, or "ray", a cluster, which may run at an address."""
    if name not in ENGINES:
        raise UnknownNameError("engine called", name, ENGINES)
    if name == "ray":
        from cndpm.engines.ray import RayEngine

        return RayEngine(n_workers, address=address, n_gpus=n_gpus, retries=retries)
    if address is not None or n_gpus:
        raise ConfigError("--address and --gpus belong to --engine ray; leave them out, or add --engine ray")
    return LocalEngine(n_workers, retries=retries)
