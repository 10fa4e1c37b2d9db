"""Parameters and labels as plain JSON values and back: tuples keep being tuples."""

from __future__ import annotations

from typing import Any

import numpy as np

_TUPLE = "$tuple"


def to_plain(value: Any) -> Any:
    """Returns a tree of dictionaries and lists with JSON leaves; raises TypeError for what cannot be one."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {_TUPLE: [to_plain(item) for item in value]}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    raise TypeError(f"cannot save a {type(value).__name__}: {value!r}. Numbers, strings, booleans and tuples can be.")


def from_plain(value: Any) -> Any:
    """Returns the value that :func:`to_plain` was given."""
    if isinstance(value, dict):
        if set(value) == {_TUPLE}:
            return tuple(from_plain(item) for item in value[_TUPLE])
        return {key: from_plain(item) for key, item in value.items()}
    return [from_plain(item) for item in value] if isinstance(value, list) else value
