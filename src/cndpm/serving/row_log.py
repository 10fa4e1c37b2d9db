"""The log of learned rows: one line for each call of `partial_fit`, on the disk before it is acknowledged.

A line is 32 hexadecimal digits, a space and a JSON object. The digits are a hash of the line before and of the object,
so that no line can be changed, left out, exchanged or taken from another log unseen. The first line of a file is its
head: the number of its first record, the last hash of the log before, the checkpoint's, and acknowledged requests. A
process that is killed, or a loss of power, can leave the last line without its end: no line is written before the one
in front of it is on the disk. Whatever else does not fit is damage.

Beside it lies its witness: the number and hash of every record that was written, not brought to the disk by itself. A
log that ends before its witness does has been shortened.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.errors import CNDPMError
from cndpm.storage import Appended

_N_DIGITS = 32


class LogError(CNDPMError, ValueError):
    """A log of learned rows is damaged or incomplete; the message says where."""


@dataclass(frozen=True)
class Acknowledgement:
    """Says where in the order of all rows those of one request were learned."""

    record: int  # number of the record that holds them
    row: int  # which row of the record is their first
    digest: str = field(default="", repr=False, compare=False)  # of the rows; see :func:`rows_digest`


def rows_digest(X: NDArray[np.float32], y: Sequence[Any] | None) -> str:
    """Returns a hash by which the rows of a request that comes again are compared with those that were learned."""
    made = hashlib.sha256(json.dumps([X.shape, None if y is None else list(y)]).encode())
    made.update(np.ascontiguousarray(X, dtype="<f4").tobytes())
    return made.hexdigest()[:_N_DIGITS]


@dataclass(frozen=True)
class Record:
    """Rows that one call of `partial_fit` learned."""

    number: int  # records before this one
    X: NDArray[np.float32]  # (n, n_features), float32
    y: list[Any] | None  # labels or targets, n of them; None for densities
    # For every request whose rows are here, in their order: its id, None where it had none, and the number of its rows
    requests: tuple[tuple[str | None, int], ...]

    def acknowledgements(self) -> list[tuple[str | None, Acknowledgement]]:
        """Returns the id of every request with the place of its rows."""
        found, row = [], 0
        for name, n_rows in self.requests:
            its = slice(row, row + n_rows)
            digest = "" if name is None else rows_digest(self.X[its], None if self.y is None else self.y[its])
            found.append((name, Acknowledgement(self.number, row, digest)))
            row += n_rows
        return found


class RowLog:
    """A file of records that is appended to, and its witness; neither may exist before.

    Requests that are `known` were acknowledged before. `before` is the last hash of the log before; of the first log,
    anything that tells its model from others. `model` is a hash of the checkpoint, `link` that of the last line.
    """

    def __init__(
        self, path: Path, first: int, known: Mapping[str, Acknowledgement], before: str = "", model: str = ""
    ) -> None:
        self._file, self._witness = Appended(path), Appended(witness_of(path))
        self.link = ""
        places = [[name, place.record, place.row, place.digest] for name, place in known.items()]
        self._write({"first": first, "before": before, "model": model, "known": places})

    @property
    def n_bytes(self) -> int:
        """Length of the file."""
        return self._file.size

    def append(self, record: Record) -> None:
        """Writes a record; it is on the disk when this returns."""
        X = record.X.astype("<f4")
        rows = {"n": len(X), "d": X.shape[1], "X": b64encode(X.tobytes()).decode()}
        self._write({"number": record.number, **rows, "y": record.y, "requests": record.requests})
        seen = b"%d %s" % (record.number, self.link.encode())
        self._witness.write(b"%s %08x\n" % (seen, zlib.crc32(seen)))

    def close(self) -> None:
        """Releases the files."""
        self._file.close()
        self._witness.close()

    def _write(self, content: Mapping[str, Any]) -> None:
        text = json.dumps(content, separators=(",", ":")).encode()
        link = _linked(self.link, text)
        self._file.write(b"%s %s\n" % (link.encode(), text))
        self._file.sync()
        self.link = link


class WrittenLog:
    """A log that is read: its head at once, its records one after the other; a last line without its end is left out.

    Without a whole line there is no head (`first`, the number of its first record, is None) and there are no records.
    `link` is the hash of the last line that was read. LogError: a line is damaged, a record is not the next one, or
    records are missing that the witness saw.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.link, self._line = path, "", 0
        self._contents = self._read()
        head = next(self._contents, None)
        try:
            self.first: int | None = None if head is None else int(head["first"])
            self.before: str = "" if head is None else head["before"]
            self.model: str | None = None if head is None else head.get("model")
            self.known = {} if head is None else {name: Acknowledgement(*place) for name, *place in head["known"]}
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self._damage("is no head of a log") from None

    def __iter__(self) -> Iterator[Record]:
        number = self.first or 0
        for content in self._contents:
            try:
                record = _record(content)
            except (KeyError, TypeError, ValueError):
                raise self._damage("is no record") from None
            if record.number != number:
                raise self._damage(f"holds record {record.number} in place of {number}")
            number += 1
            yield record
        seen = _last_seen(witness_of(self.path))
        if seen is not None and seen[0] >= number:
            raise LogError(f"{self.path} ends before record {number}; records up to {seen[0]} were acknowledged")
        if seen is not None and seen[0] == number - 1 and seen[1] != self.link:
            raise LogError(f"record {seen[0]} of {self.path} is another one than was acknowledged")

    def _read(self) -> Iterator[dict[str, Any]]:
        """Yields what the lines say, each once its hash is right."""
        if not self.path.is_file():
            return
        with self.path.open("rb") as file:
            for self._line, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return
                link, _, text = line[:-1].partition(b" ")
                if link.decode("latin-1") != _linked(self.link, text):
                    raise self._damage("is damaged")
                self.link = link.decode()
                try:
                    yield json.loads(text)
                except (ValueError, RecursionError):
                    raise self._damage("is no JSON") from None

    def _damage(self, what: str) -> LogError:
        return LogError(f"line {self._line} of {self.path} {what}")


def witness_of(path: Path) -> Path:
    """Returns the file beside a log that says what was written to it."""
    return path.with_suffix(".witness")


def _linked(before: str, text: bytes) -> str:
    return hashlib.sha256(before.encode() + text).hexdigest()[:_N_DIGITS]


def _last_seen(path: Path) -> tuple[int, str] | None:
    """Returns number and hash of the last record that a witness saw; lines that are damaged are left out."""
    for line in reversed(path.read_bytes().splitlines() if path.is_file() else []):
        seen, _, checksum = line.rpartition(b" ")
        number, _, link = seen.partition(b" ")
        if checksum == b"%08x" % zlib.crc32(seen) and number.isdigit() and len(number) <= _N_DIGITS:
            return int(number), link.decode("latin-1")
    return None


def _record(content: Mapping[str, Any]) -> Record:
    X, y = np.frombuffer(b64decode(content["X"]), dtype="<f4").reshape(content["n"], content["d"]), content["y"]
    requests = tuple((name, n_rows) for name, n_rows in content["requests"])
    are_named = all(isinstance(name, str | None) and type(n) is int and n >= 0 for name, n in requests)
    if not are_named or sum(n for _, n in requests) != len(X) or not (y is None or isinstance(y, list)):
        raise ValueError
    return Record(content["number"], X.astype(np.float32), y, requests)
