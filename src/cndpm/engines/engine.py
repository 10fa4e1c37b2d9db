"""The contract of engines: calls carried out elsewhere, some at a time, again where the worker was lost.

An engine knows nothing of models. What it is given is a function that can be imported, and tasks; a task that is begun
again is told so, to go on from what it has left on disk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cndpm.errors import CNDPMError

__all__ = ["LostWorkerError"]


class LostWorkerError(CNDPMError, RuntimeError):
    """A process ended without saying why; its work goes on from the last checkpoint when it is begun again."""


def _nobody(_: Any) -> None:
    """Takes messages that nobody waits for."""


@dataclass(frozen=True)
class Attempt:
    """Tells a function how it is called."""

    number: int = 0  # how often the same task was begun before: 0, unless a worker was lost
    tell: Callable[[Any], None] = _nobody  # passes a message on to the process that waits, where the engine can


Function = Callable[[Any, Attempt], Any]
"""Carries out one task."""

Told = Callable[[int, Any], None]
"""Takes the index of a task and a message of it."""


class Engine(ABC):
    """Carries out `n_workers` tasks at the same time; one whose worker was lost is begun again `retries` times."""

    def __init__(self, n_workers: int, *, retries: int = 2) -> None:
        if n_workers < 1:
            raise ValueError(f"an engine has at least one worker; got {n_workers}")
        self.n_workers, self.retries = n_workers, retries

    def outcomes(
        self, function: Function, tasks: Sequence[Any], *, told: Told = lambda *_: None
    ) -> Iterator[tuple[int, Any]]:
        """Yields the index of every task with its result, or with the exception that ended it, as they come.

        When the iterator is closed before its end, what is still running is stopped.

        Args:
            function: Of a module that workers can import.
            tasks: Its first argument, one for each call.
            told: Is given the messages of tasks.
        """
        waiting = deque((index, 0) for index in range(len(tasks)))
        running: dict[Any, tuple[int, int]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.n_workers:
                    index, number = waiting.popleft()
                    running[self._begin(function, tasks[index], number)] = index, number
                for call, outcome in self._wait(list(running), lambda call, text: told(running[call][0], text)):
                    index, number = running.pop(call)
                    if isinstance(outcome, LostWorkerError) and number < self.retries:
                        waiting.appendleft((index, number + 1))
                    else:
                        yield index, outcome
        finally:
            for call in running:
                self._stop(call)

    def results(self, function: Function, tasks: Sequence[Any], *, told: Told = lambda *_: None) -> list[Any]:
        """Returns the results of all tasks, in their order; the first failure stops the others and is raised."""
        found: dict[int, Any] = {}
        outcomes = self.outcomes(function, tasks, told=told)
        for index, outcome in outcomes:
            if isinstance(outcome, Exception):
                outcomes.close()  # type: ignore[attr-defined]
                raise outcome
            found[index] = outcome
        return [found[index] for index in range(len(tasks))]

    def close(self) -> None:
        """Releases what the engine has started."""

    @abstractmethod
    def _begin(self, function: Function, task: Any, number: int) -> Any:
        """Starts a call and returns what stands for it, which can be a key."""

    @abstractmethod
    def _wait(self, calls: Sequence[Any], told: Callable[[Any, Any], None]) -> list[tuple[Any, Any]]:
        """Waits until something happens; returns the calls that have ended with their outcomes, perhaps none."""

    @abstractmethod
    def _stop(self, call: Any) -> None:
        """Ends a call at once."""
