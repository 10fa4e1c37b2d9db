"""Named features as rows of numbers: which column a name has, and what stands in for a value that is missing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Columns", "Rows"]

Rows = NDArray[np.float32]


class Columns:
    """Turns features by name into rows.

    The first row that is learned says which features there are. A feature that is missing later, or None or NaN, is
    taken to have the mean of its values so far; one that comes later for the first time is left out, since experts have
    as many dimensions as they were made with.

    Example:
        >>> columns = Columns()
        >>> columns.learn({"a": 1.0, "b": 2}).tolist()
        [[1.0, 2.0]]
        >>> columns.row({"b": 4, "c": 9}).tolist()  # "a" has been 1 on average
        [[1.0, 4.0]]
    """

    def __init__(self) -> None:
        self.names: list[Hashable] = []
        self._n = np.zeros(0)
        self._mean = np.zeros(0)

    @property
    def counted(self) -> tuple[list[Hashable], NDArray[np.float64], NDArray[np.float64]]:
        """All that rows have told so far, which can be put back: the names, how often each came, the means."""
        return self.names, self._n, self._mean

    @counted.setter
    def counted(self, counted: tuple[list[Hashable], NDArray[np.float64], NDArray[np.float64]]) -> None:
        self.names, self._n, self._mean = counted

    def learn(self, x: Mapping[Any, Any]) -> Rows:
        """Returns features as a row, (1, d), and takes note of their values."""
        if not self.names:
            self._begin(x)
        values = self._values(x)
        known = ~np.isnan(values)
        self._n = self._n + known
        self._mean = self._mean + np.where(known, values - self._mean, 0.0) / np.maximum(self._n, 1)
        return self._filled(values)

    def row(self, x: Mapping[Any, Any]) -> Rows:
        """Returns features as a row, (1, d)."""
        return self._filled(self._values(x))

    def _begin(self, x: Mapping[Any, Any]) -> None:
        if not x:
            raise ValueError("the first row that is learned says which features there are; got an empty one")
        names = sorted(x, key=lambda name: (type(name).__name__, name))  # the order of a row's names has no meaning
        for name in names:
            _number(name, x[name])
        self.names, self._n, self._mean = names, np.zeros(len(names)), np.zeros(len(names))

    def _values(self, x: Mapping[Any, Any]) -> NDArray[np.float64]:
        return np.array([_number(name, x.get(name)) for name in self.names])

    def _filled(self, values: NDArray[np.float64]) -> Rows:
        return np.where(np.isnan(values), self._mean, values).astype(np.float32)[None]


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
