"""Turns away requests before they are read: without the token, from a page of another site, too large or too slow.

A server on loopback needs no token, but a web page that is open in a browser on the same machine can send requests to
it, under a name of its own that it lets point here. So the name by which a request asks for the server is checked.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Collection
from typing import Any

from cndpm.serving.limits import Limits

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
"""Names of this machine that no other one can reach."""

_OPEN = ("/", "/docs", "/health")
"""Paths that need no token: they tell nothing about the model."""

_DIGITS = 20
"""Of a length; Python refuses to read thousands of them."""

Scope = dict[str, Any]
Receive = Callable[[], Any]
Send = Callable[[dict[str, Any]], Any]


class Guard:
    """Wraps an ASGI application, which sees only requests that may pass.

    Every request but those for health must carry the `token`, where there is one, and ask for one of the `hosts`.
    `requested` is told path, status and seconds of every request; those for other `paths` are told of as "other".
    """

    def __init__(
        self,
        app: Any,
        limits: Limits,
        *,
        token: str | None = None,
        hosts: Collection[str] | None = None,
        requested: Callable[[str, int, float], None] = lambda *_: None,
        paths: Collection[str] = (),
    ) -> None:
        self.app, self._limits, self._token, self._hosts = app, limits, token, hosts
        self._requested, self._paths = requested, frozenset(paths)
        self._held = 0
        self._too_large = f"the body of a request has at most {limits.body_bytes} bytes; send several requests"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request itself or passes it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def sending(message: dict[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            refused = self.refusal(scope)
            if refused is None:
                await self._pass_on(scope, receive, sending)
            else:
                await _answer(sending, *refused)
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._requested(path, status, time.perf_counter() - began)

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Returns status and reason for a request that is turned away by its head; None for others."""
        headers = {name.lower(): value for name, value in scope["headers"]}
        if self._hosts is not None and _name(headers.get(b"host", b"")) not in self._hosts:
            return 421, "this server is asked for by another name than its own"
        if self._hosts is not None and headers.get(b"origin", _origin(headers)) != _origin(headers):
            return 403, "pages of other sites may not ask this server"
        if self._token is not None and scope["path"] not in _OPEN:
            expected = b"Bearer " + self._token.encode()
            if not secrets.compare_digest(headers.get(b"authorization", b""), expected):
                return 401, 'a token is needed: send the header "Authorization: Bearer TOKEN"'
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > _DIGITS or int(length) > self._limits.body_bytes:
            return 413, self._too_large
        return None

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Receives the body, whole and within its time, before the application hears of the request."""
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                refused = await self._receive(receive, pieces)
            if refused is None:
                await self.app(scope, _replayed(b"".join(pieces), receive), send)
            else:
                await _answer(send, *refused)
        except TimeoutError:
            await _answer(send, 408, f"the body was not there within {self._limits.body_seconds:g} seconds")
        finally:
            self._held -= sum(map(len, pieces))

    async def _receive(self, receive: Receive, pieces: list[bytes]) -> tuple[int, str] | None:
        """Collects the pieces of a body; returns status and reason where there is too much of it."""
        n_bytes, more = 0, True
        while more:
            message = await receive()
            piece, more = message.get("body", b""), message.get("more_body", False)
            n_bytes += len(piece)
            if n_bytes > self._limits.body_bytes:
                return 413, self._too_large
            if self._held + len(piece) > self._limits.held_bytes:
                return 503, "too many requests at a time; come again later"
            pieces.append(piece)
            self._held += len(piece)
        return None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Returns a source of messages that gives a body once and then what else comes."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Any:
        return waiting.pop() if waiting else await receive()

    return receiving


def _origin(headers: dict[bytes, bytes]) -> bytes:
    """Returns the origin of the server's own pages."""
    return b"http://" + headers.get(b"host", b"")


def _name(host: bytes) -> str:
    """Returns the name in a Host header, without the port."""
    text = host.decode("latin-1")
    return text.partition("]")[0] + "]" if text.startswith("[") else text.partition(":")[0]


async def _answer(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"detail": reason}).encode()
    own = {401: [(b"www-authenticate", b"Bearer")], 408: [(b"connection", b"close")]}.get(status, [])
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *own]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
