"""Bodies of requests and answers, as the OpenAPI page shows them.

They are counted before they are parsed, and parsed without repeating what is wrong with them. A body that cannot be
one, such as a list of numbers in place of rows, is told by its brackets and commas, which costs a few milliseconds at
most; only what may be right is parsed. Whatever is wrong is said in one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json

from cndpm.experts.pool.class_pool import When
from cndpm.serving.limits import Limits

_FIELDS = {"/predict": {"X", "when"}, "/explain": {"X"}, "/learn": {"X", "y", "id"}}
_KEYS = 8
"""Strings, and commas, of a body that belong to its keys and its id."""
_PER_VALUE = 128
"""Bytes that a number takes on average, at most: digits, and the white space before it."""
_LONGEST_ID = 100


class Content(NamedTuple):
    """Holds what a request says."""

    X: list[list[Any]]  # rows, lists of values
    y: list[Any] | None  # labels or targets; None where there are none
    id: str | None  # the client's name of the request, None where it has none
    when: When = "now"  # which time answers are for


def parse_body(body: bytes, path: str, limits: Limits, *, n_columns: int, n_targets: int = 1) -> Content:
    """Returns what a request says; ValueError, which repeats nothing of it, where it is no such JSON or too much.

    Example:
        >>> parse_body(b'{"X": [[1, null]], "y": ["a"]}', "/learn", Limits(), n_columns=2)
        Content(X=[[1, None]], y=['a'], id=None, when='now')
    """
    n_names = _count(body, limits, n_columns=n_columns, n_targets=n_targets)
    try:
        content = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ValueError(f"the body is not JSON, which has no NaN or Infinity: {str(error)[:100]}") from None
    allowed = _FIELDS[path]
    if not isinstance(content, dict) or not {"X"} <= content.keys() <= allowed or len(content) != n_names:
        raise ValueError(f"the body is an object with X and nothing but {', '.join(sorted(allowed))}, each named once")
    X, y, name, when = content["X"], content.get("y"), content.get("id"), content.get("when", "now")
    if not isinstance(X, list) or not all(isinstance(row, list) for row in X):
        raise ValueError(f"X is a list of rows, and each a list of {n_columns} values")
    if not (y is None or isinstance(y, list)):
        raise ValueError("y is a list with a label or target for every row")
    if not (name is None or (isinstance(name, str) and 1 <= len(name) <= _LONGEST_ID)):
        raise ValueError(f"id is a text of 1 to {_LONGEST_ID} characters")
    if when not in get_args(When):
        raise ValueError(f"when is one of {', '.join(get_args(When))}")
    _admit_labels(y or (), limits.label_length)
    return Content(X, y, name, when)


def _count(body: bytes, limits: Limits, *, n_columns: int, n_targets: int) -> int:
    """Refuses by brackets, commas and quotes what cannot be a body with so many rows; returns how many names it has."""
    if body.lstrip()[:1] != b"{":
        raise ValueError("the body is one JSON object, without others in it")
    outside = _without_texts(body, most=2 * (limits.rows * max(n_columns, 1) + 2 * _KEYS))
    n_lists, n_commas = outside.count(b"["), outside.count(b",")
    if outside.count(b"{") != 1:
        raise ValueError("the body is one JSON object, without others in it: a row is a list, not an object")
    if n_lists > 2 * limits.rows + 2:
        raise ValueError(f"a request has between 1 and {limits.rows} rows; got {n_lists} lists. Send several requests.")
    if n_commas > n_lists * (n_columns + n_targets + 1) + _KEYS:
        raise ValueError(f"X is a list of rows, and each a list of {n_columns} values; got {n_commas} commas")
    if len(outside) > _PER_VALUE * (n_commas + n_lists + _KEYS):
        raise ValueError(f"numbers take up to {_PER_VALUE} bytes on average; got {len(outside)} bytes in all")
    return outside.count(b":")


def _without_texts(body: bytes, *, most: int) -> bytes:
    """Returns a body without what stands between quotes, of which there may be so many."""
    n_quotes = body.count(b'"')
    if n_quotes > most:
        raise ValueError(f"the body holds {n_quotes // 2} texts; {most // 2} are allowed")
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(body.split(b'"')[::2])


def _admit_labels(y: Sequence[Any], most: int) -> None:
    for label in y:
        if isinstance(label, str) and len(label) > most:
            raise ValueError(f"a label has at most {most} characters; got {len(label)}. Every answer holds all labels.")


_FORBID = ConfigDict(extra="forbid")
_ROWS = (
    "Rows of numbers, each as long as those the model has learned, in the same order; null where a value is missing, "
    "texts where a column has categories."
)


class Asked(BaseModel):
    """Rows that are asked about."""

    model_config = _FORBID

    X: list[list[float | str | None]] = Field(description=_ROWS)


class AskedWhen(Asked):
    """Rows that are asked about, and which time the answers are for."""

    when: When = Field(
        default="now",
        description="`now` by the rule that holds now; `next` for the rows that come next in the stream, whose labels "
        "follow to /learn; `any` as if any time of the stream were equally likely.",
    )


class Taught(BaseModel):
    """Rows to learn."""

    model_config = _FORBID

    X: list[list[float | str | None]] = Field(description=_ROWS)
    y: list[bool | int | float | str | list[float] | None] | None = Field(
        default=None, description="A label or target for every row; none for densities."
    )
    id: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Of this request. One that comes again, since its answer was lost, is not learned twice; one with "
        "other rows is refused.",
    )


class Predicted(BaseModel):
    """Answers, one entry for each row."""

    prediction: list[Any] = Field(description="Labels, means, or 1 for known and -1 for new rows.")
    proba: list[list[float | None]] | None = Field(default=None, description="Probabilities, in the order of classes.")
    classes: list[Any] | None = Field(default=None, description="The labels met so far.")
    std: list[Any] | None = Field(default=None, description="Standard deviations of targets.")
    log_density: list[float | None] | None = Field(default=None, description="Of densities.")


class Explained(BaseModel):
    """Explanations, one entry for each row; see :class:`cndpm.estimators.explanation.Explanation`."""

    expert: list[int]
    expert_proba: list[float | None]
    prediction: list[Any]
    novelty: list[float | None]
    proba: list[float | None] | None = None
    std: list[Any] | None = None
    log_density: list[float | None] | None = None


class Learned(BaseModel):
    """Acknowledges rows: they are learned and on the disk."""

    n_rows: int
    record: int = Field(description="Number of the call of partial_fit that learned them.")
    row: int = Field(description="Which row of that call is their first.")


class Events(BaseModel):
    """Events of the experts; see :class:`cndpm.model.events.Event`."""

    events: list[dict[str, Any]]
    n_samples: int = Field(description="Samples learned so far; give it as `since` to see later events.")


class Health(BaseModel):
    """Tells whether the server answers and learns."""

    status: Literal["ok", "failed"]
    reason: str | None = Field(default=None, description="Why nothing more is learned.")
