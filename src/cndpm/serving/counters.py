"""Measures a server for Prometheus: requests, the rows of a call, learning, and the model itself."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Metrics:
    """Counts what a server does: rows `asked` about in a call of the model, rows `learned`, `checkpointed` models."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        r = self._registry = CollectorRegistry()
        self._requests = Counter("cndpm_requests", "Requests answered", ["path", "status"], registry=r)
        self._seconds = Histogram("cndpm_request_seconds", "Time of a request", ["path"], buckets=_SECONDS, registry=r)
        self.asked = Histogram("cndpm_call_rows", "Rows answered in one call", buckets=_ROWS, registry=r).observe
        self.learned = Counter("cndpm_rows_learned", "Rows learned and on the disk", registry=r).inc
        self.checkpointed = Counter("cndpm_checkpoints", "Checkpoints written", registry=r).inc

    def requested(self, path: str, status: int, seconds: float) -> None:
        """Counts a request that took `seconds` from its first byte to the last of the answer."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def gauge(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Adds a number, named after ``cndpm_``, that is read when it is asked for."""
        Gauge(f"cndpm_{name}", meaning, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """Returns all numbers in Prometheus' text format."""
        return generate_latest(self._registry)
