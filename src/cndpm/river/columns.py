"""Named features as rows of numbers: which column a name has."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.estimators.arrays import readable

__all__ = ["Columns", "Floats", "Rows"]

Floats = NDArray[np.float64]
"""Answers as numbers."""

Rows = NDArray[np.float32]
"""Rows of numbers, (n, d), NaN where one is missing."""


class Columns:
    """Turns features by name into rows.

    The first row that is learned says which features there are. A feature that is missing later, or None, is NaN; one
    that comes later for the first time is left out, since experts have as many dimensions as they were made with.

    Example:
        >>> columns = Columns()
        >>> columns.learn({"a": 1.0, "b": 2}).tolist()
        [[1.0, 2.0]]
        >>> columns.row({"b": 4, "c": 9}).tolist()
        [[nan, 4.0]]
    """

    def __init__(self) -> None:
        self.names: list[Hashable] = []

    def learn(self, x: Mapping[Any, Any]) -> Rows:
        """Returns features as a row, (1, d); the first time, takes note of their names."""
        if not self.names:
            with readable("x"):
                self._begin(x)
        return self.row(x)

    def row(self, x: Mapping[Any, Any]) -> Rows:
        """Returns features as a row, (1, d).

        Raises:
            TypeError: They are no features by name, or one is no number.
        """
        with readable("x"):
            _admit(x)
            values = [x.get(name) for name in self.names]
            if set(map(type, values)) != {float}:
                values = [_number(*pair) for pair in zip(self.names, values, strict=True)]
            return np.array([values], dtype=np.float32)

    def _begin(self, x: Mapping[Any, Any]) -> None:
        _admit(x)
        if not x:
            raise ValueError("the first row that is learned says which features there are; got an empty one")
        names = sorted(x, key=lambda name: (type(name).__name__, name))  # the order of a row's names has no meaning
        for name in names:
            _number(name, x[name])
        self.names = names


def _admit(x: Any) -> None:
    if type(x) is not dict and not isinstance(x, Mapping):
        raise TypeError(f"a row is a dictionary of features by name; got a {type(x).__name__}")


def _number(name: Hashable, value: Any) -> float:
    """Returns a value as a number, NaN where it is missing."""
    if type(value) is float:
        return value
    if value is None:
        return float("nan")
    if isinstance(value, Real | np.bool_):
        return float(value)
    raise TypeError(
        f"features are numbers; {name!r} is {value!r}. Put an encoder before the model, for instance "
        "river.preprocessing.OrdinalEncoder, or compose.SelectType(numbers.Number) to leave it out."
    )
