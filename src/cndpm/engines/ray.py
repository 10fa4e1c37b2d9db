"""The engine of a cluster: tasks as Ray's, on this machine or on many.

Ray starts and keeps the workers and moves tasks to where there is room. A task whose worker or node died is begun again
by the engine, not by Ray, so that it is told and goes on from its checkpoint. Folders and files that tasks name must be
the same on all machines: a shared file system.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from cndpm.engines.engine import Attempt, Engine, Function, LostWorkerError
from cndpm.engines.local import one_thread_each, portable
from cndpm.extras import require_extra

_LISTENING_SECONDS = 0.5
"""Time between two looks for messages; tasks that end are noticed at once."""

_DELIVERY_SECONDS = 10.0
"""The most time that a task which is done waits for its messages to arrive."""


class RayEngine(Engine):
    """Hands tasks to Ray; messages of tasks come by an actor on the node of this process.

    A task takes one CPU of the cluster at an address, and `n_gpus` or a fraction of one; where no address is given, of
    the cluster that this process is connected to, or of one that is started here. MissingExtraError: Ray is not
    installed.
    """

    def __init__(self, n_workers: int, *, retries: int = 2, address: str | None = None, n_gpus: float = 0.0) -> None:
        super().__init__(n_workers, retries=retries)
        require_extra("ray", purpose="the engine of a cluster")
        self._address, self._n_gpus, self._has_started = address, n_gpus, False
        self._mailbox: Any = None
        self._taking: Any = None
        self._begun: dict[str, Any] = {}

    def close(self) -> None:
        self._mailbox = self._taking = None  # an actor goes with the last that knows it
        if self._has_started:
            import ray

            ray.shutdown()
            self._has_started = False

    def _connect(self) -> Any:
        import ray

        if not ray.is_initialized():
            # "local" starts a cluster even where another one runs on this machine.
            here: dict[str, Any] = {"address": "local", "num_cpus": self.n_workers, "include_dashboard": False}
            where = here if self._address is None else {"address": self._address}
            with _as_this_process():
                ray.init(log_to_driver=False, logging_level="ERROR", **where)
            self._has_started = True
        if self._mailbox is None:  # on the node of this process, so that no other node takes it with it
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
            self._mailbox = ray.remote(_Mailbox).options(num_cpus=0, scheduling_strategy=here).remote()
        return ray

    def _begin(self, function: Function, task: Any, number: int) -> Any:
        ray = self._connect()
        # Ray would begin a task again by itself, which would not know of it.
        remote = ray.remote(_carry_out).options(max_retries=0, num_cpus=1, num_gpus=self._n_gpus)
        name = uuid.uuid4().hex
        call = remote.remote(function, task, number, self._mailbox, name)
        self._begun[name] = call
        return call

    def _wait(self, calls: Sequence[Any], told: Callable[[Any, Any], None]) -> list[tuple[Any, Any]]:
        import ray

        done, _ = ray.wait(list(calls), num_returns=1, timeout=_LISTENING_SECONDS)
        for name, message in self._messages(_DELIVERY_SECONDS if done else _LISTENING_SECONDS):
            if (call := self._begun.get(name)) in calls:
                told(call, message)
        self._begun = {name: call for name, call in self._begun.items() if call not in done}
        return [(call, _outcome(call)) for call in done]

    def _messages(self, seconds: float) -> list[tuple[str, Any]]:
        """Returns what tasks have told since; none where the actor is slow or was lost, without which tasks go on."""
        import ray
        from ray.exceptions import GetTimeoutError, RayError

        self._taking = self._taking or self._mailbox.take.remote()
        try:
            told: list[tuple[str, Any]] = ray.get(self._taking, timeout=seconds)
        except GetTimeoutError:
            return []  # asked for already: they come with the next look
        except RayError:
            told = []
        self._taking = None
        return told

    def _stop(self, call: Any) -> None:
        import ray

        ray.cancel(call, force=True)


class _Mailbox:
    """Holds messages of tasks until the process that waits for them asks; an actor of the cluster."""

    def __init__(self) -> None:
        self._messages: list[tuple[str, Any]] = []

    def put(self, name: str, message: Any) -> None:
        """Keeps a message of the call of this name."""
        self._messages.append((name, message))

    def take(self) -> list[tuple[str, Any]]:
        """Returns all messages since the last call."""
        messages, self._messages = self._messages, []
        return messages


@contextmanager
def _as_this_process() -> Iterator[None]:
    """Has workers that are started here find the modules that this process finds, and run with its priority."""
    before = dict(os.environ)
    os.environ["PYTHONPATH"] = os.pathsep.join(path or "." for path in sys.path)
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own 15 starves where others compute
    try:
        yield
    finally:
        for name in ("PYTHONPATH", "RAY_worker_niceness"):
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


def _outcome(call: Any) -> Any:
    """Returns the result of a call, or the exception that ended it."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        return ray.get(call)
    except RayTaskError as error:  # Ray's own, of what it could not read or start
        return RuntimeError(str(error))
    except RayError as error:
        return LostWorkerError(f"its worker was lost: {type(error).__name__}: {str(error)[:300]}")


def _carry_out(function: Function, task: Any, number: int, mailbox: Any, name: str) -> Any:
    """Carries out one task in a worker; a failure is a result, since Ray wraps exceptions in its own."""
    one_thread_each()
    told: list[Any] = []

    def tell(message: Any) -> None:
        told[:] = [mailbox.put.remote(name, message)]

    try:
        return function(task, Attempt(number, tell))
    except Exception as error:
        return portable(error)
    finally:
        _deliver(told)


def _deliver(told: list[Any]) -> None:
    """Waits a while until the last message has arrived, and so all before it."""
    import ray
    from ray.exceptions import RayError

    with suppress(RayError):
        ray.get(told, timeout=_DELIVERY_SECONDS)
