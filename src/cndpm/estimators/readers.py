"""Inputs that are no rows of numbers, and how they become such: sparse rows, and tables with categories.

Which reader a model has is decided by the first samples that it learns; plain rows need none. A reader is part of what
is saved, so later samples are read in the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from numbers import Real
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cndpm.estimators.label_codec import from_plain, to_plain
from cndpm.model.watch.exemplars import mixed_bits
from cndpm.state import State, StateError

Rows = NDArray[np.float32]

_PER_COLUMN = 4
"""Columns that each column is added to: with one, two frequent words may fall together for good."""
_MOST_CATEGORIES = 1000
_NUMBERS = frozenset((int, float, bool, type(None)))
_WORDS = _NUMBERS | {str}


@dataclass(frozen=True)
class ReadRows:
    """Rows that a model's reader has read before, to be given in place of X."""

    values: Rows  # (n, width), float32, NaN where one is missing


class ProjectedRows:
    """Projects sparse rows of any number of columns to `width`, by signs that follow from a column's number alone.

    Each column is added to or subtracted from four others, chosen by a hash (a sparse Johnson-Lindenstrauss
    projection): distances between rows keep their size to about 1 / sqrt(width). Nothing is kept of columns, and only
    those that occur in a call are computed.
    """

    def __init__(self, width: int) -> None:
        self.width = width

    def __call__(self, X: Any) -> Rows:
        rows = sparse.csr_matrix(X, dtype=np.float32)
        used, places = np.unique(rows.indices, return_inverse=True)
        if not np.isfinite(rows.data).all():
            raise ValueError("X holds NaN or infinity among its entries; sparse rows are learned where all are numbers")
        compact = sparse.csr_matrix((rows.data, places, rows.indptr), shape=(rows.shape[0], len(used)))
        projected = compact @ self._projection(used)
        return np.ascontiguousarray(projected.toarray(), dtype=np.float32)

    def state_dict(self) -> State:
        return {"kind": "projected", "width": self.width}

    def _projection(self, columns: NDArray[Any]) -> Any:
        """Returns the rows of the projection for given columns, (n_columns, width), sparse."""
        each = np.arange(_PER_COLUMN, dtype=np.uint64)
        keys: NDArray[np.uint64] = columns.astype(np.uint64)[:, None] * np.uint64(_PER_COLUMN) + each
        with np.errstate(over="ignore"):
            hashed = mixed_bits(keys + np.uint64(0x9E3779B97F4A7C15))
        signs = np.where(hashed >> np.uint64(63), 1.0, -1.0) / np.sqrt(_PER_COLUMN)
        targets = (hashed % np.uint64(self.width)).astype(np.int64)
        starts = np.arange(0, keys.size + 1, _PER_COLUMN)
        shape = (len(columns), self.width)
        return sparse.csr_matrix((signs.ravel(), targets.ravel(), starts), shape=shape)


class TableRows:
    """Reads tables of pandas, polars or pyarrow of which some columns are categories: one number for each category.

    A category that was not there at first, or is missing, has 0 in all of its column's numbers.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"size": [1.5, 2.0], "colour": pd.Categorical(["red", "blue"])})
        >>> make_reader(table, width=256)(table).tolist()  # size, blue, red
        [[1.5, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """

    def __init__(self, columns: Sequence[tuple[str, list[Hashable] | None]]) -> None:
        self.columns = list(columns)

    @property
    def width(self) -> int:
        """Numbers of a row: one for each plain column and for each category."""
        return sum(1 if categories is None else len(categories) for _, categories in self.columns)

    def __call__(self, X: Any) -> Rows:
        table = {name: (values, categories) for name, values, categories in _columns_of(X) or ()}
        parts = []
        for name, categories in self.columns:
            if name not in table:
                raise ValueError(f"X has no column {name!r}; give a table with the columns of the first one")
            parts.append(_numbers(name, table[name][0], categories))
        return np.concatenate(parts, axis=1).astype(np.float32)

    def from_lists(self, rows: Sequence[Sequence[Any]]) -> Rows:
        """Returns rows, (n, width), of lists with a value for every column in their order; None is a missing one."""
        parts = []
        for (name, categories), values in zip(self.columns, zip(*rows, strict=True), strict=True):
            has_words = categories is not None and all(isinstance(one, str) for one in categories)
            kinds, what = (_NUMBERS, "numbers") if categories is None else (_WORDS, f"categories, {categories[:3]}")
            allowed = frozenset((str, type(None))) if has_words else kinds
            if wrong := [value for value in values if type(value) not in allowed]:
                raise ValueError(f"column {name!r} holds {what}; got {shown(wrong[0])}")
            column = np.empty(len(values), dtype=object)
            column[:] = values
            parts.append(_numbers(name, column, categories))
        return np.concatenate(parts, axis=1).astype(np.float32)

    def state_dict(self) -> State:
        return {"kind": "table", "columns": [[name, to_plain(categories)] for name, categories in self.columns]}


Reader = ProjectedRows | TableRows
"""Turns inputs into rows of `width` numbers; its state is everything by which it is made again."""


def make_reader(X: Any, *, width: int) -> Reader | None:
    """Returns the reader that inputs need; None where they are rows, or few sparse columns, which are filled up."""
    if sparse.issparse(X):
        return ProjectedRows(width) if X.shape[1] > width else None
    found = _columns_of(X)
    if found is None or all(categories is None for _, _, categories in found):
        admit_numbers(X, found)
        return None
    for name, _, categories in found:
        if categories is not None and len(categories) > _MOST_CATEGORIES:
            raise ValueError(
                f"column {name!r} has {len(categories)} categories; up to {_MOST_CATEGORIES} can be told apart. Hash "
                "them to sparse rows instead: sklearn.feature_extraction.FeatureHasher."
            )
    return TableRows([(name, categories) for name, _, categories in found])


def restore_reader(state: State | None) -> Reader | None:
    """Makes the reader of a saved model again; StateError where its state is not one of a reader."""
    if state is None:
        return None
    try:
        if state["kind"] == "projected" and type(state["width"]) is int and 0 < state["width"] < 1 << 20:
            return ProjectedRows(state["width"])
        if state["kind"] == "table":
            return TableRows([(str(name), from_plain(categories)) for name, categories in state["columns"]])
    except (KeyError, TypeError, ValueError):
        pass
    raise StateError(f"the reader must be one of projected rows or of a table; got {str(state)[:100]}")


def _columns_of(X: Any) -> list[tuple[str, Any, list[Hashable] | None]] | None:
    """Returns the columns of a table, each with name, values and categories; None for what is no table."""
    module = type(X).__module__.partition(".")[0]
    if module == "pandas" and hasattr(X, "columns"):
        if not X.columns.is_unique:
            twice = X.columns[X.columns.duplicated()][0]
            raise ValueError(f"X has several columns called {twice!r}; rename them, or leave all but one out")
        return [_pandas_column(str(name), X[name]) for name in X.columns]
    if module == "polars" and type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame of polars, whose rows are not there yet; give X.collect()")
    if module == "polars" and hasattr(X, "columns"):
        return [_polars_column(name, X[name]) for name in X.columns]
    if module == "pyarrow" and hasattr(X, "column_names"):
        return [_pyarrow_column(name, X.column(name)) for name in X.column_names]
    return None


def without_na(X: Any) -> Any:
    """Returns a table of pandas that holds NaN where columns of objects or words held NA; all else as it is."""
    if type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "columns") and X.columns.is_unique:
        X = X.copy(deep=False)
        for name in X.columns[[kind.kind == "O" and kind.name != "category" for kind in X.dtypes]]:
            X[name] = X[name].to_numpy(dtype=object, na_value=np.nan)
    return X


def _pandas_column(name: str, series: Any) -> tuple[str, Any, list[Hashable] | None]:
    if series.dtype.name != "category":
        is_nullable = hasattr(series.dtype, "na_value") and series.dtype.kind in "biuf"
        return name, series.to_numpy(np.float64, na_value=np.nan) if is_nullable else series.to_numpy(), None
    return name, series.to_numpy(dtype=object), series.cat.categories.tolist()


def _polars_column(name: str, series: Any) -> tuple[str, Any, list[Hashable] | None]:
    kind = type(series.dtype).__name__ if not isinstance(series.dtype, type) else series.dtype.__name__
    if kind not in ("Categorical", "Enum"):
        return name, series.to_numpy(), None
    values = series.to_list()
    listed = series.dtype.categories.to_list() if kind == "Enum" else sorted({v for v in values if v is not None})
    return name, np.array(values, dtype=object), listed


def _pyarrow_column(name: str, column: Any) -> tuple[str, Any, list[Hashable] | None]:
    if not hasattr(column.type, "value_type") or not str(column.type).startswith("dictionary"):
        return name, np.asarray(column), None
    values = column.to_pylist()
    return name, np.array(values, dtype=object), sorted({value for value in values if value is not None})


def _numbers(name: str, values: Any, categories: list[Hashable] | None) -> NDArray[np.float64]:
    """Returns a column as numbers, (n, 1) or (n, n_categories)."""
    if categories is not None:
        place = {category: i for i, category in enumerate(categories)}
        found = np.array([place.get(value, -1) if _is_there(value) else -1 for value in values], dtype=np.int64)
        _warn_of_codes(name, values, found, categories)
        ones: NDArray[np.float64] = (found[:, None] == np.arange(len(categories))).astype(np.float64)
        return ones
    if values.dtype.kind in "mM":
        raise _dated(name, *values[:1])
    try:
        return np.asarray(values, dtype=np.float64)[:, None]
    except OverflowError:
        raise ValueError(f"column {name!r} holds a whole number that is too large") from None
    except (TypeError, ValueError):
        wrong = next(value for value in values if not _is_number(value))
        if isinstance(wrong, date | time | timedelta) or type(wrong).__name__ == "Period":
            raise _dated(name, wrong) from None
        is_mixed = any(_is_there(value) and _is_number(value) for value in values)
        raise ValueError(
            f"column {name!r} holds {str(wrong)[:40]!r}, which is no number. "
            f"{'If it stands for nothing, give NaN; if not, make' if is_mixed else 'Make'} it a category, from the "
            f"first call on: table[{name!r}].astype('category') in pandas, .cast(pl.Enum(...)) in polars."
        ) from None


def _dated(name: str, value: Any) -> ValueError:
    return ValueError(
        f"column {name!r} holds dates or times, {str(value)[:40]}. Make numbers of them that mean something: "
        "days since a date, the hour, the day of the week."
    )


def admit_numbers(X: Any, columns: Sequence[tuple[str, Any, list[Hashable] | None]] | None = None) -> None:
    """Refuses a table by the first column that holds neither numbers nor what can be read as numbers."""
    for name, values, _ in columns or _columns_of(X) or ():
        if values.dtype.kind not in "biuf":
            _numbers(name, values, None)


def _is_there(value: Any) -> bool:
    # NaN differs from itself, and of pandas' NA nobody can say
    return value is not None and type(value).__name__ != "NAType" and bool(value == value)


def _is_number(value: Any) -> bool:
    try:
        float(np.nan if value is None else value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _warn_of_codes(name: str, values: Any, found: NDArray[np.int64], categories: list[Hashable]) -> None:
    """Warns of a column of which no value is one of its categories, but all are numbers."""
    there = [value for value in values if _is_there(value)]
    if there and (found < 0).all() and all(isinstance(value, Real) for value in there):
        warnings.warn(
            f"column {name!r} holds {there[0]} and no category that it had at first, such as {categories[0]!r}: are "
            "they codes? Give the categories themselves; until then they count as unknown",
            stacklevel=2,
        )
