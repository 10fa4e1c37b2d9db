"""A progress bar for downloads, on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from cndpm.streams.fetching import ProgressReport

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[ProgressReport]:
    """Shows one bar for each file while it lasts.

    Example:
        >>> with progress_bar() as progress:
        ...     fetch_dataset("mnist", progress=progress)
    """
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bars: dict[str, TaskID] = {}
    with Progress(*columns, console=console or Console(stderr=True)) as display:

        def report(file: str, n_bytes: int, total: int | None) -> None:
            if file not in bars:
                bars[file] = display.add_task(file, total=total)
            display.update(bars[file], completed=n_bytes, total=total)

        yield report
