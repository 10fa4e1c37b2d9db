"""Serves pages to the browser of this machine, and to nobody else.

The server listens on loopback and refuses requests under another host name or from another page, so that no other page
in the browser can read it or write to it. A client that says nothing for half a minute is sent away.
"""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from cndpm.errors import CNDPMError

__all__ = ["ServingError"]

_HOST = "127.0.0.1"
_JSON = "application/json"
_DIGITS = 20  # of a length; Python refuses to read thousands of them


class ServingError(CNDPMError):
    """The port cannot be listened on."""


class Request(NamedTuple):
    """A request that came from the page itself."""

    path: str  # the address below the server's, without what follows a question mark
    body: bytes | None  # the JSON that was sent; None for a request that only reads


class Answer(NamedTuple):
    """The content of an address."""

    body: bytes
    kind: str = _JSON  # its media type
    status: int = 200


def serve_on_loopback(
    answer: Callable[[Request], Answer | None], *, port: int = 0, largest_body: int = 0
) -> ThreadingHTTPServer:
    """Returns a server that is bound to loopback and ready for ``serve_forever()``.

    Raises:
        ServingError: The port is taken, or may not be used.
    """

    handler: type = type("Handler", (_Handler,), {"answer": staticmethod(answer), "largest_body": largest_body})
    try:
        return _Server((_HOST, port), handler)
    except OSError as error:
        raise ServingError(f"cannot serve on port {port}: {error.strerror}. Name another with --port.") from error


class _Handler(BaseHTTPRequestHandler):
    """Refuses what does not come from the page itself, and answers the rest."""

    answer: Callable[[Request], Answer | None]
    largest_body: int
    timeout = 30

    def do_GET(self) -> None:
        if self._is_ours():
            self._answer(None)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not self._is_ours():
            return
        if not self.largest_body:
            self.send_error(405)
        elif self.headers.get_content_type() != _JSON:  # a form of another page cannot send this
            self.send_error(415, "this server takes application/json")
        elif not length.isdecimal() or len(length) > _DIGITS or int(length) > self.largest_body:
            self.send_error(413, f"at most {self.largest_body} bytes can be sent at once")
        else:
            self._answer(self.rfile.read(int(length)))

    def log_message(self, format: str, *args: object) -> None:
        """Stays quiet."""

    def _is_ours(self) -> bool:
        """Returns whether the request names this server, and comes from its page or from no page at all."""
        port = self.connection.getsockname()[1]
        allowed = {f"{name}:{port}" for name in (_HOST, "localhost")}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") not in allowed:
            self.send_error(421, "this server answers on loopback only")
        elif origin is not None and origin.removeprefix("http://") not in allowed:
            self.send_error(403, "this server answers its own page only")
        else:
            return True
        return False

    def _answer(self, body: bytes | None) -> None:
        path = self.path.partition("?")[0]
        try:
            found = type(self).answer(Request(path, body))
        except Exception as error:
            self.send_error(500, "this cannot be shown", f"{type(error).__name__}: {str(error)[:300]}")
            return
        if found is None:
            self.send_error(404)
            return
        self.send_response(found.status)
        self.send_header("Content-Type", f"{found.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(found.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(found.body)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stays quiet: a client that went away concerns nobody."""
