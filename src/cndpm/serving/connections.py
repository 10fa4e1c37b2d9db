"""Connections: so many at a time, and none that begins a request and does not end it, or does not take its answer."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol  # others do not bound the bytes of a head

from cndpm.serving.limits import Limits

_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
_Uvicorns: Any = H11Protocol


def bounded_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Returns uvicorn's protocol of HTTP with bounds: it has none by itself on the time of a head or of an answer."""
    return type("Bounded", (_Bounded,), {"limits": limits})


class _Bounded(_Uvicorns):  # type: ignore[misc]
    """One connection."""

    limits: ClassVar[Limits]
    _timer: asyncio.TimerHandle | None = None
    _leaving: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.write(_BUSY)
            transport.close()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._await_taking(is_left=False)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_taking(is_left=True)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._await_taking(is_left=self.transport.get_write_buffer_size() > 0)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._leaving is None:
            self._await_taking(is_left=self.transport.get_write_buffer_size() > 0)

    def _await_taking(self, *, is_left: bool) -> None:
        """Cuts the connection unless what is left of an answer is taken in time; `close` would wait for it."""
        if self._leaving is not None:
            self._leaving.cancel()
        self._leaving = self.loop.call_later(self.limits.answer_seconds, self._cut) if is_left else None

    def _cut(self) -> None:
        self._leaving = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _watch(self) -> None:
        """Begins to count where a head is awaited, and ends where one is there."""
        is_waiting = self.cycle is None or self.cycle.response_complete
        if not is_waiting:
            self._forget()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.limits.head_seconds, self.transport.close)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
