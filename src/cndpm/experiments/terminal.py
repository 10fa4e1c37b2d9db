"""Shows runs on the terminal: how far, how many experts, the memory, the accuracy so far, the time left.

Everything goes to standard error, so that standard output stays for results.
"""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cndpm.experiments.monitor import Monitor
from cndpm.experiments.printed_tables import format_count

__all__ = ["TerminalMonitor"]

_REFRESH_SECONDS = 0.1
_NARROW = 120
"""Columns of a terminal below which the bar itself and the times leave room for the facts."""
_PHASE_WIDTH = 20
"""Characters of the facts that the title leaves free: "making an expert 50%"."""
_PHASES = {"sleep": "making an expert", "evaluation": "testing"}
"""What a person reads for the names that learners and loops report."""
_FACTS = ("phase", "experts", "memory", "score", "window", "parameters")
"""What is told of a run, the first of it where there is little room."""


class Bars:
    """The progress bars of all runs that go on at the same time, on standard error unless another console is given."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        is_wide = self.console.width >= _NARROW
        self._progress = Progress(
            TextColumn("{task.description}"),
            *([BarColumn(bar_width=20)] if is_wide else []),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            *([TimeRemainingColumn()] if is_wide else []),
            TextColumn("{task.fields[facts]}"),
            console=self.console,
            refresh_per_second=1,  # by itself, so that time goes on while an expert is made
            transient=True,
            disable=not self.console.is_terminal,
        )

    def add(self, title: str, *, completed: int, total: int) -> TaskID:
        """Adds a bar behind a title, with the batches learned so far and those of the whole run."""
        self._progress.start()
        return self._progress.add_task(title, completed=completed, total=total, facts="")

    def update(self, bar: TaskID, **changes: Any) -> None:
        """Changes a bar, as rich's ``Progress.update`` does, and shows all."""
        self._progress.update(bar, **changes)
        self._progress.refresh()

    def remove(self, bar: TaskID) -> None:
        """Takes a bar away; with the last one, the terminal is free again."""
        self._progress.remove_task(bar)
        if not self._progress.tasks:
            self._progress.stop()


class TerminalMonitor(Monitor):
    """A progress bar where there is a terminal, one line per evaluation where there is none (a file, a pipe).

    Example:
        >>> import sys
        >>> monitor = TerminalMonitor(Console(file=sys.stdout))
        >>> monitor.started("digits · slda · seed 0", step=20, n_batches=146)
        digits · slda · seed 0: goes on after batch 20 of 146
        >>> monitor.close()
    """

    def __init__(self, bars: Bars | Console | None = None) -> None:
        self._bars = bars if isinstance(bars, Bars) else Bars(bars)
        self.console = self._bars.console
        self._bar: TaskID | None = None
        self._facts: dict[str, str] = {}
        self._shown_at = 0.0

    def started(self, title: str, *, step: int, n_batches: int) -> None:
        self._title = title
        self._n_batches = n_batches
        room = self.console.width - 2 * len(str(n_batches)) - len("/ 0:00:00  ")  # beside "51/100" and the time
        shown = _cut(title, max(room - _PHASE_WIDTH, 0))
        self._room = room - len(shown)
        self._bar = self._bars.add(shown, completed=step, total=n_batches)
        if step:
            self.console.print(f"{title}: goes on after batch {step} of {n_batches}", highlight=False, soft_wrap=True)

    def learned(self, step: int) -> None:
        if self._due():
            self._facts.pop("phase", None)
            self._show(completed=step)

    def phase(self, name: str, fraction: float) -> None:
        begins = self.console.is_terminal and fraction == 0  # shown at once: what follows may take long
        if begins or self._due():
            self._facts["phase"] = _PHASES.get(name, name) + (f" {fraction:.0%}" if fraction else "")
            if name == "sleep":
                self._facts.pop("memory", None)  # full by now, and empty when it is over
            self._show()

    def progressed(self, row: dict[str, Any]) -> None:
        n_parameters = row["n_parameters"]
        in_memory = row.get("n_in_memory", row["memory_samples"])  # of a mixture, what no expert has learned
        self._facts["experts"] = f"{row['n_experts']} expert{'s' if row['n_experts'] != 1 else ''}"
        self._facts["parameters"] = f"{format_count(n_parameters)} parameters" if n_parameters else ""
        self._facts["memory"] = f"memory {in_memory}" if in_memory else ""

    def evaluated(self, row: dict[str, Any]) -> None:
        self.progressed(row)
        self._facts["score"] = _score(row)
        if not self.console.is_terminal:
            said = f"{self._title}: batch {row['step']} of {self._n_batches} · {self._said()}"
            self.console.print(said, highlight=False, soft_wrap=True)

    def windowed(self, row: dict[str, Any]) -> None:
        self._facts["window"] = "latest " + _window_score(row)

    def close(self) -> None:
        if self._bar is not None:
            self._bars.remove(self._bar)

    def _due(self) -> bool:
        return self.console.is_terminal and time.monotonic() - self._shown_at > _REFRESH_SECONDS

    def _said(self) -> str:
        return " · ".join(self._facts[name] for name in _FACTS if self._facts.get(name))

    def _show(self, **changes: Any) -> None:
        facts = self._said() if self.console.width >= _NARROW else _cut(self._said(), self._room)
        if self._bar is not None:
            self._bars.update(self._bar, facts=facts, **changes)
        self._shown_at = time.monotonic()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(most - 1, 0)] + "…"


def _score(row: dict[str, Any]) -> str:
    if row.get("bits_per_dim") is not None:
        return f"{row['bits_per_dim']:.4f} bits/dim"
    if row.get("accuracy") is None:
        return "" if row["n_experts"] else "no expert yet"
    learned = row.get("learned_accuracy", row["accuracy"])
    return f"accuracy {row['accuracy']:.2f} % (learned {learned:.2f} %)"


def _window_score(row: dict[str, Any]) -> str:
    if "accuracy" in row:
        return f"{row['accuracy']:.1f} %"
    return f"error {row['absolute_error']:.3g}" if "absolute_error" in row else f"{row['bits_per_dim']:.3f} bits/dim"
