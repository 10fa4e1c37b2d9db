"""Serves a page of runs that updates itself while they are running, on loopback only.

The server answers GET for two paths, ``/`` and ``/data.json``, and refuses requests under another host name, so that
no other page in the browser can read it. Records are read again when they have changed. A client has a few seconds for
its request and answer, and there are only so many at a time: one that is slow, or opens many connections, keeps no
others from the page for long.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Lock, Timer
from typing import Any

from cndpm.experiments.record import RecordError
from cndpm.reports.content import Content
from cndpm.reports.html import page_values, render_page
from cndpm.reports.showing import shown

__all__ = ["REFRESH_SECONDS", "make_server"]

REFRESH_SECONDS = 2.0
"""Seconds between two looks of the page at the records."""

_HOST = "127.0.0.1"
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n"


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
                self._answers = shown(self.paths, self._rendered)[1]
                self._state = state
            return self._answers.get(path)

    def _rendered(self, content: Content) -> dict[str, bytes]:
        values = page_values(content, refresh_seconds=self.refresh_seconds)
        page = render_page(content, refresh_seconds=self.refresh_seconds)
        return {"/": page.encode(), "/data.json": json.dumps(values).encode()}

    def _files(self) -> list[tuple[str, int, int]]:
        kinds = ("*.json", "*.jsonl", "*.npz")
        files = {file for path in self.paths for kind in kinds for file in path.rglob(kind)}
        return [(str(file), *_size_and_time(file)) for file in sorted(files)]


class _Server(ThreadingHTTPServer):
    """Gives every connection a limited time, and refuses those that are too many."""

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler], *, seconds: float, n_connections: int) -> None:
        self._seconds, self._free = seconds, BoundedSemaphore(n_connections)
        super().__init__((_HOST, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begins a thread for a connection where there is room."""
        if not self._free.acquire(blocking=False):
            with suppress(OSError):
                request.sendall(_BUSY)
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers, and ends the connection after its time, however the client goes on."""
        end = Timer(self._seconds, _break_off, (request,))
        end.daemon = True
        end.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stays quiet: a client that went away, or was sent away, concerns nobody."""


def _break_off(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


def make_server(
    paths: Sequence[str | Path],
    *,
    port: int = 0,
    refresh_seconds: float = REFRESH_SECONDS,
    client_seconds: float = 30.0,
    n_connections: int = 32,
) -> ThreadingHTTPServer:
    """Returns a server that is bound to loopback and ready for ``serve_forever()``.

    Args:
        paths: Folders of records, or folders above them; they need not hold a record yet.
        port: 0 takes any free port; see ``server.server_port``.
        refresh_seconds: How often the page asks for new values.
        client_seconds: Time of a connection; what is not asked and answered by then is broken off.
        n_connections: Connections at a time; further ones are told to come back.

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
            try:
                body = watched.answer(path)
            except Exception as error:
                self.send_error(500, "the records cannot be shown", f"{type(error).__name__}: {str(error)[:300]}")
                return
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
        server = _Server(port, Handler, seconds=client_seconds, n_connections=n_connections)
    except OSError as error:
        raise RecordError(f"cannot serve on port {port}: {error.strerror}. Name another with --port.") from error
    return server


def _size_and_time(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:  # replaced just now
        return 0, 0
    return found.st_size, found.st_mtime_ns
