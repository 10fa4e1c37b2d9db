"""Bodies of requests: counted before they are parsed, and parsed without repeating what is wrong with them.

A body that cannot be one, such as a list of numbers in place of rows, is told by its brackets and commas, which costs
a few milliseconds at most; only what may be right is parsed. Whatever is wrong is said in one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

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
