"""Monitors of runs. The loop tells a monitor what happens; a monitor never changes what is learned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cndpm.validation import ConfigError

__all__ = ["Monitor", "Monitors", "NumberMonitor", "TensorBoardMonitor", "numbers_of"]

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


class NumberMonitor(Relay):
    """Base of monitors that pass the numbers of a run on to a service; `examples/trackers.py` has two.

    Example:
        >>> class Printed(NumberMonitor):
        ...     def log(self, group, row):
        ...         print(row["step"], dict(numbers_of(group, row)))
        >>> Printed().evaluated({"step": 10, "accuracy": 0.9})
        10 {'evaluation/accuracy': 0.9}
    """

    @abstractmethod
    def log(self, group: str, row: Row) -> None:
        """Passes the numbers of a row on.

        Args:
            group: "progress", "evaluation" or "window".
            row: Of the log; `numbers_of` names its numbers.
        """

    def tell(self, event: str, *arguments: Any, **values: Any) -> None:
        group = {"progressed": "progress", "evaluated": "evaluation", "windowed": "window"}.get(event)
        if group is not None:
            self.log(group, *arguments)


class TensorBoardMonitor(NumberMonitor):
    """Writes every number of the log as a scalar for TensorBoard to a folder; ConfigError where that is not installed.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     monitor = TensorBoardMonitor(folder)
        ...     monitor.started("digits · slda · seed 0", step=0, n_batches=146)
        ...     monitor.evaluated({"step": 10, "accuracy": 0.9})
        ...     monitor.close()
        ...     print(len(list(Path(folder).iterdir())))
        1
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ConfigError("--tensorboard needs the package tensorboard: pip install 'cndpm[tensorboard]'") from None
        self._open = SummaryWriter
        self._folder = folder
        self._writer: Any = None

    def started(self, title: str, *, step: int, n_batches: int) -> None:
        self._writer = self._open(str(self._folder), purge_step=step + 1)  # hides what an interrupted run wrote beyond

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def log(self, group: str, row: Row) -> None:
        for name, number in numbers_of(group, row):
            self._writer.add_scalar(name, number, row["step"])


def numbers_of(group: str, row: Row) -> Iterator[tuple[str, float]]:
    """Returns the numbers of a row of the log by name, those of lists one by one.

    Args:
        group: What names begin with.
        row: The row; its step is left out.

    Example:
        >>> dict(numbers_of("evaluation", {"step": 3, "accuracy": 0.5, "tasks": [0.4, 0.6], "name": "x"}))
        {'evaluation/accuracy': 0.5, 'evaluation/tasks/0': 0.4, 'evaluation/tasks/1': 0.6}
    """
    for name, value in row.items():
        values = {f"{name}/{i}": v for i, v in enumerate(value)} if isinstance(value, list) else {name: value}
        for label, number in values.items():
            if isinstance(number, int | float) and not isinstance(number, bool) and name != "step":
                yield f"{group}/{label}", number
