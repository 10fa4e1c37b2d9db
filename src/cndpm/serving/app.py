"""The application: endpoints that ask and teach one model.

`create_app` makes an ASGI application, which any ASGI server can run; `cndpm.serving.Server` runs it with uvicorn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from importlib import resources
from threading import Lock
from typing import Annotated, Any, get_args

import numpy as np
from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware import Middleware
from numpy.typing import NDArray
from pydantic import BaseModel

from cndpm.estimators.classifier import CNDPMClassifier
from cndpm.experts.pool.class_pool import When
from cndpm.serving.answering import described, explanations, learnable, predictions, rows
from cndpm.serving.batcher import Answered, Batcher
from cndpm.serving.bodies import (
    Asked,
    AskedWhen,
    Content,
    Events,
    Explained,
    Health,
    Learned,
    Predicted,
    Taught,
    parse_body,
)
from cndpm.serving.counters import Metrics
from cndpm.serving.guard import Guard
from cndpm.serving.limits import Limits
from cndpm.serving.store import Store
from cndpm.serving.writer import BusyError, LearnRequest, OtherRowsError, Writer, WriterFailedError
from cndpm.version import __version__

__all__ = ["create_app"]

_LONG = 1 << 15
"""Bytes of a body from which on it is read in a thread, so that others are answered meanwhile."""

_SAID = 1000
"""Characters of an error."""

_STATUSES: Mapping[type[Exception], int] = {BusyError: 503, WriterFailedError: 500, OtherRowsError: 409}

_write = json.JSONEncoder(allow_nan=False).encode

_PAGES = ("/", "/docs")
"""Addresses of the page: one file that asks nobody but the server it came from, and tells nothing by itself."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"

PATHS = (*_PAGES, "/predict", "/explain", "/learn", "/events", "/model", "/health", "/metrics")


def create_app(
    store: Store, *, limits: Limits | None = None, token: str | None = None, hosts: tuple[str, ...] | None = None
) -> FastAPI:
    """Makes the application that serves the model of a store; it closes the store when it is stopped.

    Args:
        store: Holds the model; nobody else may change it.
        limits: Of requests and of what waits.
        token: Every request but those for health must carry it as ``Authorization: Bearer TOKEN``.
        hosts: Names by which the server may be asked for; None allows any.
    """
    service = _Service(store, limits or Limits())
    guard: dict[str, Any] = {"limits": service.limits, "token": token, "hosts": hosts, "paths": PATHS}
    app = FastAPI(
        title="cndpm",
        version=__version__,
        description="A model that learns while it answers.",
        lifespan=service.lifespan,
        docs_url=None,  # FastAPI's own pages fetch scripts of others
        redoc_url=None,
        middleware=[Middleware(Guard, requested=service.metrics.requested, **guard)],
        exception_handlers={RequestValidationError: _first_mistake},
    )
    service.add_endpoints(app)
    _add_page(app)
    return app


class _Service:
    """One model with what asks it, teaches it and counts."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self.store, self.limits, self.model = store, limits, store.model
        self.metrics = Metrics()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="cndpm-answers")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="cndpm-bodies")
        self._n_due, self._due = 0, Lock()
        self.writer = Writer(store, limits, learned=self._learned, checkpointed=self.metrics.checkpointed)
        ask = partial(Batcher, executor=self._executor, limits=limits, asked=self.metrics.asked)
        self._predicting = {when: ask(partial(self._predictions, when)) for when in get_args(When)}
        self._explaining = ask(partial(explanations, self.model))
        self._add_gauges()

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Closes everything when the server is stopped: what waits is learned, and a checkpoint is written."""
        yield
        await asyncio.to_thread(self.writer.close)
        self._executor.shutdown()
        self._reader.shutdown()

    def add_endpoints(self, app: FastAPI) -> None:
        app.post("/predict", response_model=Predicted, openapi_extra=_body_of(AskedWhen))(self.predict)
        app.post("/explain", response_model=Explained, openapi_extra=_body_of(Asked))(self.explain)
        app.post("/learn", response_model=Learned, openapi_extra=_body_of(Taught))(self.learn)
        app.get("/events", response_model=Events)(self.events)
        app.get("/model")(self.facts)
        app.get("/health", response_model=Health)(self.health)
        app.get("/metrics", response_class=Response)(self.measured)

    async def predict(self, request: Request) -> Response:
        """Answers rows."""
        X, content = await self._content(request)
        answered = await self._predicting[content.when].ask(X)
        return await asyncio.to_thread(_json, answered) if len(X) > 10 else _json(answered)

    async def explain(self, request: Request) -> Response:
        """Answers rows, and says which expert answered and how new each row is."""
        X, _ = await self._content(request)
        return _json(await self._explaining.ask(X))

    async def learn(self, request: Request) -> Response:
        """Learns rows; the answer comes when they are learned and on the disk."""
        X, content = await self._content(request)
        try:
            y = learnable(self.model, content.y, len(X))
            place = await asyncio.wrap_future(self.writer.submit(LearnRequest(X, y, content.id)))
        except (ValueError, TypeError, BusyError, WriterFailedError) as error:
            status = _STATUSES.get(type(error), 422)
            raise HTTPException(status, str(error)[:_SAID], {"Retry-After": "1"} if status == 503 else None) from error
        return _json({"n_rows": len(X), "record": place.record, "row": place.row})

    async def events(self, since: Annotated[int, Query(ge=0)] = 0) -> Response:
        """Lists what happened to the experts after sample number `since`, of the latest 1,000 events."""
        n_samples, events = await self._read(lambda: (self.model.learner_.events.n_samples, self.model.events_))
        later = [event._asdict() for event in events if event.sample > since]
        return _json({"events": later, "n_samples": n_samples})

    async def facts(self) -> Response:
        """Tells of the model: its kind, experts, samples and labels."""
        return _json(await self._read(lambda: described(self.model)))

    async def health(self) -> Response:
        """Tells whether the server answers and learns; 503 when it learns no more."""
        if self.writer.failure is not None:
            return _json({"status": "failed", "reason": str(self.writer.failure)}, status=503)
        return _json({"status": "ok", "reason": None})

    async def measured(self) -> Response:
        """Returns metrics in Prometheus' text format."""
        return Response(await self._read(self.metrics.text), media_type=self.metrics.content_type)

    # Inside

    def _predictions(self, when: When, X: NDArray[np.float32]) -> Answered:
        """Answers rows; those that come next come after all that were asked about so, and not learned yet."""
        if when != "next":
            return predictions(self.model, X, when)
        answered = predictions(self.model, X, when, n_before=self._n_due)
        self._count_due(len(X))
        return answered

    def _learned(self, n_rows: int) -> None:
        self.metrics.learned(n_rows)
        self._count_due(-n_rows)

    def _count_due(self, n_rows: int) -> None:
        with self._due:
            self._n_due = min(max(self._n_due + n_rows, 0), self.limits.awaited_labels)

    async def _content(self, request: Request) -> tuple[NDArray[np.float32], Content]:
        """Returns the rows of a request as the model reads them, and all that it says."""
        body = await request.body()
        read = partial(self._parsed, body, request.url.path)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._reader, read) if len(body) > _LONG else read()
        except ValueError as error:
            raise HTTPException(422, str(error)[:_SAID]) from error

    def _parsed(self, body: bytes, path: str) -> tuple[NDArray[np.float32], Content]:
        settings = self.model.learner_.settings
        sizes = {"n_columns": self.model.n_features_in_, "n_targets": settings.n_outputs}
        content = parse_body(body, path, self.limits, **sizes)
        n_labels = len(self.model.classes_) if path == "/predict" and isinstance(self.model, CNDPMClassifier) else 1
        most = min(self.limits.rows, max(1, self.limits.answer_values // n_labels))
        return rows(content.X, self.model, most=most), content

    async def _read(self, question: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._executor, question)

    def _add_gauges(self) -> None:
        self.metrics.gauge("experts", "Experts of the model", lambda: self.model.n_experts_)
        self.metrics.gauge("samples", "Samples learned so far", lambda: self.model.learner_.events.n_samples)
        self.metrics.gauge("waiting_rows", "Rows that wait to be learned", lambda: self.writer.n_waiting)
        self.metrics.gauge("log_bytes", "Log since the last checkpoint", lambda: self.store.log_bytes)


def _json(content: Mapping[str, Any], status: int = 200) -> Response:
    """Returns an answer; written here since checking one's own answers again takes longer than computing them."""
    texts = (f'"{name}": {_text(value)}' for name, value in content.items())
    return Response("{" + ", ".join(texts) + "}", status_code=status, media_type="application/json")


def _text(value: Any) -> str:
    # Entry by entry: while one call wrote all of a long list, no other thread could do anything.
    return f"[{', '.join(map(_write, value))}]" if isinstance(value, list) else _write(value)


def _body_of(message: type[BaseModel]) -> dict[str, Any]:
    """Describes the body of a request, which endpoints read by themselves."""
    content = {"application/json": {"schema": message.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


async def _first_mistake(_: Request, error: Exception) -> Response:
    """Answers a request whose address has mistakes, without repeating it."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))[:100]
    return _json({"detail": f"{len(error.errors())} mistakes, the first in {where}: {first['msg'][:200]}"}, status=422)


def _add_page(app: FastAPI) -> None:
    """Serves the page: what the server serves, how that is doing, a form to try it, and requests to copy."""
    text = (resources.files("cndpm") / "serving" / "page.html").read_text(encoding="utf-8")
    headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}

    async def page() -> Response:
        return Response(text, media_type="text/html", headers=headers)

    for path in _PAGES:
        app.get(path, include_in_schema=False)(page)
