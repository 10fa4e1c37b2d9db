"""Class labels that a file can hold, discovered and counted as they arrive, against the indices that learners use."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Hashable, Iterable, Sequence
from itertools import filterfalse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.estimators.arrays import readable

_MAX_DEPTH = 32
"""Tuples inside tuples; deeper ones would exhaust the stack of whatever walks through them."""

_MAX_BITS = 1024
"""Of a whole number: Python refuses to write down those of many thousands of digits."""


class LabelCodec:
    """Numbers labels in the order of their first arrival and counts them; a `closed` one takes no others."""

    def __init__(self, labels: Iterable[Hashable] = (), *, closed: bool = False) -> None:
        self.labels: list[Hashable] = []
        self.counts: list[int] = []
        self.closed = closed
        self._index: dict[Hashable, int] = {}
        with readable("classes"):
            for label in labels:
                self._add(_plain(label))

    def __len__(self) -> int:
        return len(self.labels)

    def copy(self) -> LabelCodec:
        """Returns a codec that knows the same labels and can learn others."""
        other, other.closed = LabelCodec.__new__(LabelCodec), self.closed
        other.labels, other._index, other.counts = self.labels.copy(), self._index.copy(), self.counts.copy()
        return other

    def encode(
        self, y: Sequence[Any] | NDArray[Any], times: NDArray[np.int64] | None = None, *, learn: bool
    ) -> NDArray[np.int64]:
        """Returns the indices of labels, (n,); `learn` counts them, each so many `times`, and adds unknown ones.

        These are an error else.
        """
        values = label_values(y)
        unknown = list(filterfalse(self._index.__contains__, dict.fromkeys(values)))
        if unknown and (self.closed or not learn):
            known = ", ".join(map(repr, self.labels)) or "none"
            raise ValueError(f"y contains labels that are not among the known classes: {unknown}; known: {known}")
        for label in unknown:
            self._add(label)
        indices = list(map(self._index.__getitem__, values))
        if learn:
            for i, index in enumerate(indices):
                self.counts[index] += 1 if times is None else int(times[i])
        return np.array(indices, dtype=np.int64)

    def find(self, label: Any) -> int | None:
        """Returns the index of a label that was met before, None for others."""
        return self._index.get(_plain(label))

    def count(self, label: Any) -> int:
        """Returns how often a label has been learned."""
        index = self.find(label)
        return 0 if index is None else self.counts[index]

    def order(self) -> NDArray[np.int64]:
        """Returns the indices in sorted order of their labels; in order of arrival where labels cannot be compared."""
        try:
            return np.array(sorted(range(len(self)), key=lambda i: self.labels[i]), dtype=np.int64)  # type: ignore[arg-type,return-value]
        except TypeError:
            return np.arange(len(self), dtype=np.int64)

    def classes(self) -> NDArray[Any]:
        """Returns the labels in the order of :meth:`order`, as an array of the narrowest type that holds them."""
        ordered = [self.labels[i] for i in self.order()]
        if len({type(label) for label in ordered}) == 1 and isinstance(ordered[0], str | int | float | bool):
            narrow = np.array(ordered)
            # numpy rounds large whole numbers and drops zeros that end a string
            if narrow.tolist() == ordered and type(narrow.tolist()[0]) is type(ordered[0]):
                return narrow
        array = np.empty(len(ordered), dtype=object)
        array[:] = ordered
        return array

    def _add(self, label: Hashable) -> None:
        if label not in self._index:
            self._index[label] = len(self.labels)
            self.labels.append(label)
            self.counts.append(0)


def label_values(y: Sequence[Any] | NDArray[Any]) -> list[Any]:
    """Returns labels as plain Python values; in arrays of whole numbers, truths or words there is nothing to check."""
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iubU":
        values: list[Any] = y.tolist()
        return values
    return [_plain(label) for label in y]


def _plain(label: Any) -> Any:
    """Returns a label as a plain Python value, which a file holds and gives back as it was.

    Nothing is asked of values of other types, not even whether they can be hashed.
    """
    if type(label) in (bool, str) or (type(label) is int and label.bit_length() <= _MAX_BITS):
        return label
    if isinstance(label, np.generic):
        label = label.item()
    pieces = [(label, 0)]
    while pieces:
        piece, depth = pieces.pop()
        if isinstance(piece, tuple) and depth < _MAX_DEPTH:
            pieces += [(inner, depth + 1) for inner in tuple.__iter__(piece)]
        else:
            _check(piece, label)
    return _exact(label)


def _check(piece: Any, label: Any) -> None:
    """Refuses what cannot be a label or a part of one."""
    if isinstance(piece, list | dict | set | bytearray | np.ndarray):
        raise TypeError(f"labels must be hashable; got a {type(piece).__name__}{_shown(label)}")
    if isinstance(piece, tuple) or not (piece is None or isinstance(piece, bool | int | float | str)):
        raise TypeError(
            f"labels are numbers, strings, booleans, None, or tuples of these, which a saved model can hold; got a "
            f"{type(piece).__name__}{_shown(label)}. Use its name or number instead."
        )
    if isinstance(piece, float) and not math.isfinite(piece):
        raise ValueError(f"labels must not be NaN or infinite; got {_exact(piece)!r}")
    if isinstance(piece, int) and (n_bits := int.bit_length(piece)) > _MAX_BITS:
        raise ValueError(f"whole numbers that are labels have at most {_MAX_BITS} bits; got {n_bits} bits")


def _exact(label: Any) -> Any:
    """Returns values of derived types, such as members of an IntEnum, as what they are equal to, none of them asked."""
    if label is None or type(label) in (bool, int, float, str):
        return label
    if isinstance(label, tuple):
        return tuple(map(_exact, tuple.__iter__(label)))
    if isinstance(label, str):
        return str.__str__(label)
    return int.__int__(label) if isinstance(label, int) else float.__float__(label)


def _shown(label: Any) -> str:
    """Shows a label in a message, unless it is so deep that showing it could not end well."""
    is_plain = isinstance(label, list | dict | set | bytes | frozenset) and not isinstance(label, tuple)
    return f": {reprlib.repr(label)}" if is_plain else ""


_TUPLE, _PAIRS = "$tuple", "$pairs"


def to_plain(value: Any) -> Any:
    """Returns a tree of dictionaries and lists with JSON leaves; raises TypeError for what cannot be one."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        items = [to_plain(item) for item in value]
        return items if isinstance(value, list) else {_TUPLE: items}
    if isinstance(value, dict):
        if all(isinstance(key, str) and key[:1] != "$" for key in value):
            return {key: to_plain(item) for key, item in value.items()}
        return {_PAIRS: [[to_plain(key), to_plain(item)] for key, item in value.items()]}
    raise TypeError(f"cannot save a {type(value).__name__}: {value!r}. Numbers, strings, booleans and tuples can be.")


def from_plain(value: Any) -> Any:
    """Returns the value that :func:`to_plain` was given."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if made := {_TUPLE: tuple, _PAIRS: dict}.get(*value) if len(value) == 1 else None:
        return made(from_plain(*value.values()))
    return {key: from_plain(item) for key, item in value.items()}
