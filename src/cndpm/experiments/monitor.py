"""Monitors of runs. The loop tells a monitor what happens; a monitor never changes what is learned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

__all__ = ["Monitor", "Monitors"]

Row = dict[str, Any]


class Monitor:
    """Watches a run and does nothing with it; subclasses take what they need.

    Example:
        >>> class Steps(Monitor):
        ...     def learned(self, step):
        ...         print("batch", step)
        >>> Steps().learned(3)
        batch 3
    """

    def started(self, title: str, *, step: int, n_batches: int) -> None:
        """Called when a run begins, or goes on after batch `step`.

        Args:
            title: Names scenario, learner and seed.
            step: Batches learned so far.
            n_batches: Batches of the whole run.
        """

    def learned(self, step: int) -> None:
        """Called when batch `step` has been learned, after every batch: must be quick."""

    def phase(self, name: str, fraction: float) -> None:
        """Called while the learner is busy with something long within one batch, e.g. sleep.

        Args:
            name: Of what takes long.
            fraction: The part done.
        """

    def progressed(self, row: Row) -> None:
        """Called when a line of progress was logged: experts, parameters, memory, time."""

    def evaluated(self, row: Row) -> None:
        """Called when an evaluation was logged."""

    def windowed(self, row: Row) -> None:
        """Called when the scores of a window of answers given before learning were logged."""

    def finished(self, summary: Row) -> None:
        """Called when the run is complete."""

    def close(self) -> None:
        """Called when the run is over, complete or not."""


def _relayed(event: str) -> Any:
    """Returns the method that passes one event on."""

    def pass_on(self: Relay, *arguments: Any, **values: Any) -> None:
        self.tell(event, *arguments, **values)

    return pass_on


class Relay(Monitor, ABC):
    """Passes every event on, as its name and its arguments."""

    started = _relayed("started")
    learned = _relayed("learned")
    phase = _relayed("phase")
    progressed = _relayed("progressed")
    evaluated = _relayed("evaluated")
    windowed = _relayed("windowed")
    finished = _relayed("finished")
    close = _relayed("close")

    @abstractmethod
    def tell(self, event: str, *arguments: Any, **values: Any) -> None:
        """Passes one event on: ``getattr(monitor, event)(*arguments, **values)`` is what happened."""


class Monitors(Relay):
    """Several monitors as one: each is told everything, in their order.

    Example:
        >>> Monitors([Monitor(), Monitor()]).learned(1)
    """

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self.monitors = tuple(monitors)

    def tell(self, event: str, *arguments: Any, **values: Any) -> None:
        for monitor in self.monitors:
            getattr(monitor, event)(*arguments, **values)
