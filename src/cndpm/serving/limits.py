"""Limits of a server: what one request may hold, how long it may take to come, and what may wait."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Bounds what a server takes.

    Attributes:
        body_bytes: Bytes of the body of one request.
        held_bytes: Bytes of the bodies of all requests that are being answered.
        rows: Rows of one request.
        answer_values: Probabilities of one answer, rows times labels; with more labels fewer rows are answered at once.
        label_length: Characters of a label; every answer holds all labels.
        labels: Labels that a model may come to know; what brings more is refused, what it knows is learned on.
        label_characters: Characters of all labels together, which a file of the model must hold in its header.
        connections: Connections at a time; others are closed at once.
        head_seconds: Until the head of a request is there, from its first byte or from the connection on.
        body_seconds: Until its body is there.
        answer_seconds: Until a client has taken what is ready for it; then its connection is cut.
        waiting_rows: Rows that may wait to be learned; requests beyond are asked to come again.
        batch_rows: Rows that one call of the model answers or learns; requests that wait share a call up to that.
        window: Seconds that a prediction waits for others to share a call with. 0 waits for none: those that come
            while a call is going on share the next one.
        awaited_labels: Rows asked about as the next ones whose labels are awaited, counted up to that.

    Example:
        >>> Limits(rows=100).batch_rows
        1000
    """

    body_bytes: int = 4 * 2**20
    held_bytes: int = 256 * 2**20
    rows: int = 10_000
    answer_values: int = 200_000
    label_length: int = 1000
    labels: int = 1000
    label_characters: int = 200_000
    connections: int = 256
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    answer_seconds: float = 30.0
    waiting_rows: int = 100_000
    batch_rows: int = 1000
    window: float = 0.0
    awaited_labels: int = 100
