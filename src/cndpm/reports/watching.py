"""Serves a page of runs that updates itself while they are running, on loopback only.

The server answers GET for two paths, ``/`` and ``/data.json``, and refuses requests under another host name, so that
no other page in the browser can read it. Records are read again when they have changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from cndpm.experiments.record import RecordError
from cndpm.reports.content import gather
from cndpm.reports.html import page_values, render_page

__all__ = ["REFRESH_SECONDS", "make_server"]

REFRESH_SECONDS = 2.0
"""Seconds between two looks of the page at the records."""

_HOST = "127.0.0.1"


class Watched:
    """Renders the page of some folders again when a file in them has changed."""

    def __init__(self, paths: Sequence[str | Path], refresh_seconds: float) -> None:
        self.paths = [Path(path) for path in paths]
        self.refresh_seconds = refresh_seconds
        self._lock = Lock()
        self._state: object = None
        self._answers: dict[str, bytes] = {}

    def answer(self, path: str) -> bytes | None:
        """Returns the content of a path; None where there is nothing."""
        with self._lock:
            state = self._files()
            if state != self._state:
                content = gather(self.paths)
                values = page_values(content, refresh_seconds=self.refresh_seconds)
                page = render_page(content, refresh_seconds=self.refresh_seconds)
                self._answers = {"/": page.encode(), "/data.json": json.dumps(values).encode()}
                self._state = state
            return self._answers.get(path)

    def _files(self) -> list[tuple[str, int, int]]:
        kinds = ("*.json", "*.jsonl", "*.npz")
        files = {file for path in self.paths for kind in kinds for file in path.rglob(kind)}
        return [(str(file), *_size_and_time(file)) for file in sorted(files)]


def make_server(
    paths: Sequence[str | Path], *, port: int = 0, refresh_seconds: float = REFRESH_SECONDS
) -> ThreadingHTTPServer:
    """Returns a server that is bound to loopback and ready for ``serve_forever()``.

    Args:
        paths: Folders of records, or folders above them; they need not hold a record yet.
        port: 0 takes any free port; see ``server.server_port``.
        refresh_seconds: How often the page asks for new values.

    Raises:
        RecordError: A folder does not exist, or the port is taken.
    """
    for path in paths:
        if not Path(path).is_dir():
            raise RecordError(f"there is no folder {path} to watch")
    watched = Watched(paths, refresh_seconds)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = {f"{name}:{server.server_port}" for name in (_HOST, "localhost")}
            if self.headers.get("Host") not in allowed:
                self.send_error(421, "this server answers on loopback only")
                return
            path = self.path.partition("?")[0]
            body = watched.answer(path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            kind = "text/html" if path == "/" else "application/json"
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stays quiet."""

    try:
        server = ThreadingHTTPServer((_HOST, port), Handler)
    except OSError as error:
        raise RecordError(f"cannot serve on port {port}: {error.strerror}. Name another with --port.") from error
    return server


def _size_and_time(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:  # replaced just now
        return 0, 0
    return found.st_size, found.st_mtime_ns
