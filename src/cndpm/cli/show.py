"""Prints results: plain tables to read, one JSON object for programs."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import HTTPServer
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from cndpm.experiments.learners import shown_learner
from cndpm.experiments.monitor import Monitor, Monitors
from cndpm.experiments.printed_tables import METRICS, FoldingTable, format_value
from cndpm.experiments.terminal import Bars, TerminalMonitor
from cndpm.names import load_object


@contextmanager
def download_bars(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Shows one bar per file; what it gives is called with a file's name, the bytes received and the bytes in all."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as progress:
        bar_of: dict[str, TaskID] = {}

        def told(name: str, n_bytes: int, total: int) -> None:
            if name not in bar_of:
                bar_of[name] = progress.add_task(name, total=total)
            progress.update(bar_of[name], completed=n_bytes, total=total)

        yield told


def monitors_of(*, quiet: bool, monitors: Iterable[str] = ()) -> Callable[[Path], Monitor]:
    """Returns what makes the monitor of the run in a folder: the terminal unless quiet, and one's own."""
    own, bars = [load_object(name, Monitor) for name in monitors], None if quiet else Bars()

    def make(folder: Path) -> Monitor:
        made = [] if bars is None else [TerminalMonitor(bars)]
        return Monitors([*made, *(one(folder) for one in own)])

    return make


def show(content: Mapping[str, Any], tables: Sequence[RenderableType], *, as_json: bool) -> None:
    """Prints tables and, for programs, one JSON object as the last line of standard output."""
    console = Console(stderr=as_json)
    if not console.is_terminal:
        console = Console(stderr=as_json, width=200)  # a file has no edge to wrap at
    for one in tables:
        console.print(one)
    if as_json:
        print(json.dumps(content), flush=True)


def show_results(
    results: Sequence[Mapping[str, Any]],
    title: str,
    content: Mapping[str, Any],
    *,
    as_json: bool,
    names: Sequence[str] | None = None,
) -> None:
    """Prints a table with one row per result; columns without any value are left out."""
    keys = [key for key in METRICS if any(result.get(key) is not None for result in results)]
    presets = [result["preset"] for result in results]
    table = {
        "run" if names else "learner": names or [shown_learner(result["learner"]) for result in results],
        **({"preset": presets} if set(presets) != {"default"} else {}),
        "seeds": [str(len(result["runs"])) for result in results],
    }
    for key in keys:
        table[METRICS[key].label] = [format_value(key, one.get(key), one["standard_error"].get(key)) for one in results]
    show(content, [FoldingTable(title, list(table), list(zip(*table.values(), strict=True)))], as_json=as_json)


def serve_page(server: HTTPServer, doing: str, *, open_: bool = False) -> None:
    """Serves a page until Ctrl-C, and opens it in a browser if asked to."""
    with server:
        address = f"http://127.0.0.1:{server.server_port}/"
        print(f"{doing} at {address} (Ctrl-C ends it)", flush=True)
        if open_:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def show_reproduction(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints our values beside the paper's, as the report and the page of results show them."""
    from cndpm.reports.formats import to_terminal
    from cndpm.reports.tables import reproduction_table

    show(summary, [to_terminal(reproduction_table(summary))], as_json=as_json)
