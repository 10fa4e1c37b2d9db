"""Connections: so many at a time, and none that begins a request and does not end it."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from cndpm.serving.limits import Limits

_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"


def bounded_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Returns uvicorn's protocol of HTTP with bounds: it has none by itself on the time that a head may take."""
    uvicorns: Any = AutoHTTPProtocol

    class Bounded(uvicorns):  # type: ignore[misc]
        """One connection."""

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.write(_BUSY)
                transport.close()
            else:
                self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _watch(self) -> None:
            """Begins to count where a head is awaited, and ends where one is there."""
            is_waiting = self.cycle is None or self.cycle.response_complete
            if not is_waiting:
                self._forget()
            elif self._timer is None:
                self._timer = self.loop.call_later(limits.head_seconds, self.transport.close)

        def _forget(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Bounded
