"""Rows of others: streams of the literature in files (ARFF, CSV), and batches with named columns.

Files are looked for in the folder of datasets, under the names by which they are passed on, the label in the last
column. Nothing is downloaded. Datasets of Hugging Face are known by their methods; no package is imported for them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import arff

from cndpm.datasets.files import DamagedFileError
from cndpm.datasets.loading import MissingDataError, resolve_data_dir
from cndpm.names import UnknownNameError
from cndpm.streams.drift import FILED
from cndpm.streams.rows import Rows


def rows_of_file(name: str, data_dir: str | Path | None = None) -> Rows:
    """Reads a stream of :data:`~cndpm.streams.drift.FILED`.

    MissingDataError: the file is not there. DamagedFileError: it has other columns, or something that is no number.
    """
    folder, names, n_columns = resolve_data_dir(data_dir), FILED[name]["names"], FILED[name]["n_columns"]
    path = next((folder / one for one in names if (folder / one).is_file()), None)
    if path is None:
        raise MissingDataError(
            f"{name} is not in {folder}, and cannot be fetched. Put {names[0]} (or {names[-1]}) there, or "
            "name its folder by --data-dir."
        )
    try:
        columns = _arff_columns(path) if path.suffix == ".arff" else _csv_columns(path)
    except (ValueError, NotImplementedError, StopIteration, csv.Error) as error:
        raise DamagedFileError(f"{path} cannot be read: {str(error)[:200] or 'it ends too early'}") from error
    if len(columns) != n_columns + 1:
        raise DamagedFileError(f"{path} has {len(columns)} columns; {name} has {n_columns} and the label, last")
    x = np.stack([_numbers(column, path) for column in columns[:-1]], axis=1)
    return Rows(x, np.unique(columns[-1], return_inverse=True)[1].astype(np.int64))


def _arff_columns(path: Path) -> list[NDArray[np.str_]]:
    with path.open(encoding="utf-8") as file:
        data, _ = arff.loadarff(file)
    return [np.asarray(data[name]).astype(str) for name in data.dtype.names]


def _csv_columns(path: Path) -> list[NDArray[np.str_]]:
    """Reads columns as words; a first line without any number holds names."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.reader(file) if line]
    if len({len(line) for line in lines}) != 1:
        raise ValueError("its lines have different numbers of columns, or there are none")
    start = not any(_is_number(word) for word in lines[0])
    return [np.array(column) for column in zip(*lines[start:], strict=True)]


def _numbers(column: NDArray[np.str_], path: Path) -> NDArray[np.float64]:
    try:
        return column.astype(np.float64)
    except ValueError:
        wrong = next(word for word in column.tolist() if not _is_number(word))
        raise DamagedFileError(f"{path} holds {wrong[:40]!r} where a number should be") from None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


_LABELS = ("label", "labels", "target", "y")
"""Names that a column of labels has by habit, the first of them first."""


def is_dataset(source: Any) -> bool:
    """Returns whether a source is a dataset of Hugging Face: rows with named columns, to be read in batches."""
    return callable(getattr(source, "iter", None)) and callable(getattr(source, "with_format", None))


class NamedBatches:
    """Turns dictionaries of columns into pairs (x, y)."""

    def __init__(self, x_column: str | None, y_column: str | None) -> None:
        self._x, self._y = x_column, y_column

    def pair(self, batch: Mapping[str, Any]) -> Any:
        """Returns (x, y), or x alone where no column holds labels."""
        x, y = self._names(list(batch))
        inputs = _channels_first(batch[x]) if isinstance(batch[x], np.ndarray) else batch[x]
        return inputs if y is None else (inputs, batch[y])

    def opened(self, dataset: Any, batch_size: int) -> tuple[Callable[[int], Iterator[Any]], dict[str, Any]]:
        """Returns a function that reads a dataset from batch `start` on, and `n_classes` and `n_batches` if known."""
        features = dict(getattr(dataset, "features", None) or {})
        y = self._names(list(features))[1] if features else self._y
        rows = dataset.with_format("numpy")
        can_skip = hasattr(dataset, "__len__") and callable(getattr(dataset, "select", None))

        def read(start: int) -> Iterator[Any]:
            first = min(start * batch_size, len(dataset)) if can_skip else 0
            part = rows.select(range(first, len(dataset))) if can_skip else rows.skip(start * batch_size)
            return (self.pair(batch) for batch in part.iter(batch_size=batch_size))

        known = {"n_batches": -(-len(dataset) // batch_size)} if can_skip else {}
        n_classes = getattr(features.get(y), "num_classes", None) if y is not None else None
        return read, known | ({} if n_classes is None else {"n_classes": n_classes})

    def _names(self, columns: list[str]) -> tuple[str, str | None]:
        for name in (self._x, self._y):
            if name is not None and name not in columns:
                raise UnknownNameError("column", name, columns)
        y = self._y or next((name for name in _LABELS if name in columns and name != self._x), None)
        left = [name for name in columns if name != y]
        if self._x is None and len(left) != 1:
            raise ValueError(f"which column holds the inputs? Say x_column=...; there are {', '.join(left) or 'none'}")
        return self._x or left[0], y


def _channels_first(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns images of bytes (n, height, width) or (n, height, width, 3) as (n, channels, height, width)."""
    if x.dtype != np.uint8 or x.ndim not in (3, 4):
        return x
    return x[:, None] if x.ndim == 3 else np.ascontiguousarray(np.moveaxis(x, -1, 1)) if x.shape[-1] in (1, 3) else x
