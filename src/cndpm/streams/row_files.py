"""Streams of the literature in files (ARFF, CSV).

They are looked for in the folder of datasets, under the names by which they are passed on, the label in the last
column. Nothing is downloaded.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.io import arff

from cndpm.datasets.files import DamagedFileError
from cndpm.datasets.loading import MissingDataError, resolve_data_dir
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
