"""The log of learned rows: one line for each call of `partial_fit`, on the disk before it is acknowledged.

A line is eight hexadecimal digits, the CRC-32 of the rest, a space and a JSON object. The first line of a file is its
head: the number of its first record and the requests that were acknowledged before. A process that is killed, or a loss
of power, can cut off the last line of a file alone: no line is written before the one in front of it is on the disk.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.errors import CNDPMError
from cndpm.storage import Appended

__all__ = ["Acknowledgement", "LogError", "Record", "RowLog", "read_log"]


class LogError(CNDPMError, ValueError):
    """A log of learned rows is damaged or incomplete; the message says where."""


@dataclass(frozen=True)
class Acknowledgement:
    """Says where in the order of all rows those of one request were learned.

    Attributes:
        record: Number of the record that holds them.
        row: Which row of the record is their first.

    Example:
        >>> Acknowledgement(record=3, row=0)
        Acknowledgement(record=3, row=0)
    """

    record: int
    row: int


@dataclass(frozen=True)
class Record:
    """Rows that one call of `partial_fit` learned.

    Attributes:
        number: Records before this one.
        X: (n, n_features), float32.
        y: Labels or targets, n of them; None for densities.
        requests: For every request whose rows are here, in their order: its id, None where it had none, and the
            number of its rows.

    Example:
        >>> record = Record(0, np.ones((2, 3), dtype=np.float32), ["a", "b"], (("mine", 1), (None, 1)))
        >>> record.acknowledgements()
        [('mine', Acknowledgement(record=0, row=0)), (None, Acknowledgement(record=0, row=1))]
    """

    number: int
    X: NDArray[np.float32]
    y: list[Any] | None
    requests: tuple[tuple[str | None, int], ...]

    def acknowledgements(self) -> list[tuple[str | None, Acknowledgement]]:
        """Returns the id of every request with the place of its rows."""
        found, row = [], 0
        for name, n_rows in self.requests:
            found.append((name, Acknowledgement(self.number, row)))
            row += n_rows
        return found


class RowLog:
    """A file of records that is appended to.

    Args:
        path: The file; it must not exist.
        first: Number of the first record to come.
        known: Requests acknowledged before, by their ids.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     log = RowLog(Path(folder, "log"), 0, {})
        ...     log.append(Record(0, np.ones((1, 2), dtype=np.float32), ["a"], ((None, 1),)))
        ...     log.close()
        ...     known, records = read_log(Path(folder, "log"))
        ...     [(record.number, record.X.tolist(), record.y) for record in records]
        [(0, [[1.0, 1.0]], ['a'])]
    """

    def __init__(self, path: Path, first: int, known: Mapping[str, Acknowledgement]) -> None:
        self._file = Appended(path)
        head = {"first": first, "known": [[name, place.record, place.row] for name, place in known.items()]}
        self._write(head)

    @property
    def n_bytes(self) -> int:
        """Length of the file."""
        return self._file.size

    def append(self, record: Record) -> None:
        """Writes a record; it is on the disk when this returns."""
        X = record.X.astype("<f4")
        rows = {"n": len(X), "d": X.shape[1], "X": b64encode(X.tobytes()).decode()}
        self._write({"number": record.number, **rows, "y": record.y, "requests": record.requests})

    def close(self) -> None:
        """Releases the file."""
        self._file.close()

    def _write(self, content: Mapping[str, Any]) -> None:
        text = json.dumps(content, separators=(",", ":")).encode()
        self._file.write(b"%08x %s\n" % (zlib.crc32(text), text))
        self._file.sync()


def read_log(path: Path) -> tuple[dict[str, Acknowledgement], Iterator[Record]]:
    """Reads a log; a last line that was cut off is left out.

    Args:
        path: The file.

    Returns:
        The requests that were acknowledged before the first record, and the records.

    Raises:
        LogError: A line other than the last is damaged.
    """
    lines = _lines(path)
    head: dict[str, Any] = next(lines, {"known": []})
    return {name: Acknowledgement(record, row) for name, record, row in head["known"]}, map(_record, lines)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        damaged = None
        for number, line in enumerate(file, start=1):
            if damaged is not None:
                raise LogError(
                    f"line {damaged} of {path} is damaged, and acknowledged rows follow it. Restore the file from a "
                    "copy, or move the folder away to begin again with the model that was served first."
                )
            content = _content(line)
            if content is None:
                damaged = number
            else:
                yield content


def _content(line: bytes) -> dict[str, Any] | None:
    """Returns what a line says; None where it is damaged."""
    checksum, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
        return None
    content: dict[str, Any] = json.loads(text)
    return content


def _record(content: Mapping[str, Any]) -> Record:
    X = np.frombuffer(b64decode(content["X"]), dtype="<f4").reshape(content["n"], content["d"])
    requests = tuple((name, n_rows) for name, n_rows in content["requests"])
    return Record(content["number"], X.astype(np.float32), content["y"], requests)
