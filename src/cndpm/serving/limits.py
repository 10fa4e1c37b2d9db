"""Limits of a server: what one request may hold, and what may wait."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Bounds what a server takes.

    Attributes:
        body_bytes: Bytes of the body of one request.
        rows: Rows of one request.
        waiting_rows: Rows that may wait to be learned; requests beyond are asked to come again.
        batch_rows: Rows that one call of the model answers or learns; requests that wait share a call up to that.
        window: Seconds that a prediction waits for others to share a call with. 0 waits for none: those that come
            while a call is going on share the next one.

    Example:
        >>> Limits(rows=100).batch_rows
        1000
    """

    body_bytes: int = 16 * 2**20
    rows: int = 10_000
    waiting_rows: int = 100_000
    batch_rows: int = 1000
    window: float = 0.0
