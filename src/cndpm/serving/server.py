"""Runs the application with uvicorn: on loopback unless a token is given, and with bounds on connections.

There are so many at a time, and none that begins a request and does not end it, or does not take its answer.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol  # others do not bound the bytes of a head

from cndpm.serving.app import create_app
from cndpm.serving.guard import LOOPBACK
from cndpm.serving.limits import Limits
from cndpm.serving.store import Store
from cndpm.validation import ConfigError

__all__ = ["Server"]

_SHORTEST_TOKEN = 16
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
_Uvicorns: Any = H11Protocol


class Server:
    """Serves a model.

    Args:
        model: File that `save` wrote. It is read and never written.
        folder: Where checkpoints and the log of learned rows go; None: beside the file, with ``.served`` behind its
            name. Where there are some, the model goes on from them.
        host: Address to listen at.
        port: Port; 0 takes any free one.
        token: What every client must send; needed where `host` is not loopback.
        limits: Of requests.
        checkpoint_rows: Rows learned between two checkpoints.
        salvage: Whether to go on without the rows that a damaged log has lost, instead of refusing it.

    Attributes:
        url: Address for clients.

    Raises:
        ConfigError: The token is missing or too short, or the address cannot be listened at.
        StoreError: The folder belongs to another model or server.
        CNDPMError: The log of learned rows is damaged.

    Example:
        >>> import json, tempfile, urllib.request
        >>> import numpy as np
        >>> from cndpm import CNDPMClassifier
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     CNDPMClassifier(random_state=0).fit(X, X[:, 0] > 0).save(f"{folder}/model.cndpm")
        ...     with Server(f"{folder}/model.cndpm", port=0) as server:
        ...         body = json.dumps({"X": [[2.0, 0.0]]}).encode()
        ...         head = {"Content-Type": "application/json"}
        ...         request = urllib.request.Request(f"{server.url}/predict", body, head)
        ...         json.load(urllib.request.urlopen(request))["prediction"]
        [True]
    """

    def __init__(
        self,
        model: str | Path,
        *,
        folder: str | Path | None = None,
        host: str = "127.0.0.1",
        port: int = 8000,
        token: str | None = None,
        limits: Limits | None = None,
        checkpoint_rows: int = 10_000,
        salvage: bool = False,
    ) -> None:
        is_local = host in LOOPBACK
        _check_token(token, host, is_local=is_local)
        self._socket = _listen(host, port)
        port = self._socket.getsockname()[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        try:
            where = Path(folder) if folder is not None else Path(f"{model}.served")
            store = Store(Path(model), where, checkpoint_rows=checkpoint_rows, salvage=salvage)
        except BaseException:
            self._socket.close()
            raise
        app = create_app(store, limits=limits, token=token, hosts=LOOPBACK if is_local else None)
        options: Any = {"log_level": "error", "access_log": False, "lifespan": "on", "timeout_keep_alive": 60}
        bounded = type("Bounded", (_Bounded,), {"limits": limits or Limits()})
        self._server = uvicorn.Server(uvicorn.Config(app, http=bounded, ws="none", **options))
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serves until the process is asked to end (Ctrl-C, SIGTERM): then what waits is learned and written."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def __enter__(self) -> Self:
        """Serves in a thread; for notebooks and tests."""
        self._thread = threading.Thread(target=self.run, name="cndpm-server", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.001)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops serving."""
        self._server.should_exit = True
        assert self._thread is not None
        self._thread.join()


def _check_token(token: str | None, host: str, *, is_local: bool) -> None:
    if token is None and not is_local:
        raise ConfigError(f"others can reach {host}, so a token is needed. Set CNDPM_TOKEN, or serve on 127.0.0.1.")
    if token is not None and (len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise ConfigError(
            f"a token has at least {_SHORTEST_TOKEN} printable ASCII characters; got {len(token)}. Make one: "
            "python -c 'import secrets; print(secrets.token_urlsafe())'"
        )


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind, proto)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(address)
        except BaseException:
            opened.close()
            raise
    except OSError as error:
        raise ConfigError(f"cannot listen at {host}, port {port}: {error.strerror or error}") from error
    return opened


class _Bounded(_Uvicorns):  # type: ignore[misc]
    """One connection by uvicorn, which has no bounds by itself on the time of a head or of an answer."""

    limits: ClassVar[Limits]
    _timer: asyncio.TimerHandle | None = None
    _leaving: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.write(_BUSY)
            transport.close()
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_head()

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

    def _await_head(self) -> None:
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
