"""Serves a page of runs that updates itself while they are running, on loopback only.

There are two addresses, ``/`` and ``/data.json``. Records are read again when they have changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from cndpm.experiments.record import RecordError
from cndpm.loopback import Answer, Request, ServingError, serve_on_loopback
from cndpm.reports.content import Content
from cndpm.reports.html import page_values, render_page, shown

REFRESH_SECONDS = 2.0
"""Seconds between two looks of the page at the records."""


class Watched:
    """Renders the page of some folders again when a file in them has changed."""

    def __init__(self, paths: Sequence[str | Path], refresh_seconds: float) -> None:
        self.paths = [Path(path) for path in paths]
        self.refresh_seconds = refresh_seconds
        self._lock = Lock()
        self._state: object = None
        self._answers: dict[str, Answer] = {}

    def answer(self, request: Request) -> Answer | None:
        """Returns the content of an address; None where there is nothing."""
        with self._lock:
            state = self._files()
            if state != self._state:
                self._answers = shown(self.paths, self._rendered)[1]
                self._state = state
            return self._answers.get(request.path)

    def _rendered(self, content: Content) -> dict[str, Answer]:
        values = page_values(content, refresh_seconds=self.refresh_seconds)
        page = render_page(content, refresh_seconds=self.refresh_seconds)
        return {"/": Answer(page.encode(), "text/html"), "/data.json": Answer(json.dumps(values).encode())}

    def _files(self) -> list[tuple[str, int, int]]:
        kinds = ("*.json", "*.jsonl", "*.npz")
        files = {file for path in self.paths for kind in kinds for file in path.rglob(kind)}
        return [(str(file), *_size_and_time(file)) for file in sorted(files)]


def make_server(
    paths: Sequence[str | Path], *, port: int = 0, refresh_seconds: float = REFRESH_SECONDS, **limits: Any
) -> ThreadingHTTPServer:
    """Returns a server bound to loopback and ready for ``serve_forever()``, or raises RecordError."""
    for path in paths:
        if not Path(path).is_dir():
            raise RecordError(f"there is no folder {path} to watch")
    try:
        return serve_on_loopback(Watched(paths, refresh_seconds).answer, port=port, **limits)
    except ServingError as error:
        raise RecordError(str(error)) from error


def _size_and_time(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:  # replaced just now
        return 0, 0
    return found.st_size, found.st_mtime_ns
