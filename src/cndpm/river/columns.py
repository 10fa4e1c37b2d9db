"""Named features as rows of numbers: which column a name or a word has, and what stands where none came."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.estimators.arrays import readable

Floats = NDArray[np.float64]
"""Answers as numbers."""

Rows = NDArray[np.float32]
"""Rows of numbers, (n, d), NaN where one is missing."""

_LARGEST = float(np.finfo(np.float32).max)

_MOST = 1000
"""Columns at most; a stream of words without end would have ever more."""


Column = tuple[Hashable, str | None]
"""One number of a row: that of the feature of a name, or whether that feature is a word."""


class Columns:
    """Turns features by name into rows. Columns are added as they come, and never change their place.

    A number or a truth has one column, a word one for each word that its feature has had: 1 where it came, else 0. A
    number that did not come is NaN, that is, missing. A flag is 0 where it did not come, which is what encoders and
    bags of words mean: a number that has only ever been 1, or that was not in the first row and has only been 0 or 1.
    `places` are those of the columns in a row; `flags` the values that each may have to stay one, none if it is none.

    Example:
        >>> columns = Columns().taking({"a": 1.0, "colour": "red"})[0]
        >>> columns.row({"a": 2, "colour": "blue"}).tolist()
        [[2.0, 0.0]]
        >>> columns = columns.taking({"a": 2, "colour": "blue"})[0]
        >>> columns.row({"colour": "blue"}).tolist()
        [[nan, 0.0, 1.0]]
    """

    def __init__(self, places: Mapping[Column, int] | None = None, flags: Sequence[tuple[int, ...]] = ()) -> None:
        self.places = dict(places or {})
        self.flags = tuple(flags)
        self._has_flags = any(self.flags)
        self._blank: Rows = np.array([[0 if flag else np.nan for flag in flags]], dtype=np.float32)

    def __len__(self) -> int:
        return len(self.places)

    def taking(self, x: Mapping[Any, Any]) -> tuple[Columns, Rows]:
        """Returns the columns once a row has come, the same where it brings nothing new, and the row in them, (1, d).

        ValueError: nothing in the first row is known. TypeError: a feature is neither a number nor a word.
        """
        with readable("x"):
            cells = _cells(x)
            if not self.places and all(number != number for _, number in cells):
                raise ValueError("the first row that is learned has no features; give it those that are known")
            new = [cell for cell in cells if cell[0] not in self.places][: max(_MOST - len(self), 0)]
            flagged = cells if self._has_flags else []
            known = [(self.places[column], number) for column, number in flagged if column in self.places]
            no_flags = {place for place, number in known if self.flags[place] and number not in self.flags[place]}
            is_other = new or no_flags or not self.places
            columns = self._grown(new if self.places else self._sorted(x), no_flags) if is_other else self
            return columns, columns._row(cells)

    def row(self, x: Mapping[Any, Any]) -> Rows:
        """Returns features as a row, (1, d); those without a column are left out."""
        with readable("x"):
            return self._row(_cells(x))

    def _row(self, cells: list[tuple[Column, float]]) -> Rows:
        row = self._blank.copy()
        for column, number in cells:
            if (place := self.places.get(column)) is not None:
                if abs(number) > _LARGEST:  # in a column that waits to be used it would be met too late
                    said = f"{column[0]!r} is {number!r}"
                    raise ValueError(f"features are not infinite, nor too large for 32 bits; {said}")
                row[0, place] = number
        return row

    def widened(self, row: Rows) -> Rows:
        """Returns a row (1, at most d) that came when there were fewer columns, (1, d)."""
        return np.concatenate([row, self._blank[:, row.shape[1] :]], axis=1)

    def _sorted(self, x: Mapping[Any, Any]) -> list[tuple[Column, float]]:
        """Returns the columns of a first row: what is missing has one too, and the order of names has no meaning."""
        names = sorted(x, key=lambda name: (type(name).__name__, name))[:_MOST]
        return [_cell(name, x[name]) or ((name, None), np.nan) for name in names]

    def _grown(self, new: list[tuple[Column, float]], no_flags: set[int]) -> Columns:
        """Returns these columns and more, of which some are no flags any longer."""
        if len(self) + len(new) >= _MOST:
            _warn_of_many(new[-1][0])
        places, is_first = dict(self.places), not self.places
        flags = [() if i in no_flags else flag for i, flag in enumerate(self.flags)]
        for column, number in new:
            places[column] = len(places)
            flag = (1,) if is_first and column[1] is None else (0, 1)
            flags.append(flag if number in flag else ())
        return Columns(places, flags)


def _cells(x: Mapping[Any, Any]) -> list[tuple[Column, float]]:
    """Returns the columns that a row has a value for, with their numbers."""
    if type(x) is not dict and not isinstance(x, Mapping):
        raise TypeError(f"a row is a dictionary of features by name; got a {type(x).__name__}")
    cells = [((name, None), v) if type(v) is float else _cell(name, v) for name, v in x.items()]
    return [cell for cell in cells if cell is not None]


def _cell(name: Hashable, value: Any) -> tuple[Column, float] | None:
    """Returns the column that a value belongs to, and its number there; None where it is missing."""
    if isinstance(value, str):
        return (name, str(value)), 1.0
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # what pandas has for None
        return None
    if isinstance(value, Real | np.bool_ | Decimal):
        return (name, None), float(value)
    raise TypeError(
        f"features are numbers, truths or words; {name!r} is {value!r}, a {type(value).__name__}. Make a number or a "
        f"word of it before the model, or leave it out: compose.Discard({name!r})."
    )


def _warn_of_many(column: Column) -> None:
    word = "" if column[1] is None else f", now {column[1]!r}; numbers in quotation marks are words, too"
    warnings.warn(
        f"there are {_MOST} columns now, one for each number and for each word, and others will be left out. The "
        f"last feature that brought one is {column[0]!r}{word}. Put river.preprocessing.FeatureHasher before the "
        f"model, or leave the feature out: compose.Discard({column[0]!r}).",
        stacklevel=5,
    )
