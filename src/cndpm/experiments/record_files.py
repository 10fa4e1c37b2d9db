"""Files of a record: JSON with a checksum, the log of a run, and the portrait of a mixture.

JSON files are written whole, and refused when they were changed: the key ``sha256`` holds the checksum of everything
else, in a spelling that does not depend on spaces or order. ``portrait.npz`` holds what shows a mixture without its
learner: samples drawn from it and from every expert, and the experts' similarity.

The log has one event per line, is only ever appended to, and gives each line its number and a checksum:

    {"event": "progress", "step": 30, "n_experts": 2, "line": 4, "crc": "5d41402a"}

A run that resumes repeats the batches after its checkpoint; its "resume" event says how long the log was then, and what
lies between is dropped on reading: lines that a crash cut off among them. Any other line that does not fit its
checksum, or that is missing, is a problem, which readers are told of. Checksums begin with one of the configuration, so
that lines of another run do not fit.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cndpm.datasets import DamagedFileError
from cndpm.datasets.npz import read_npz
from cndpm.errors import CNDPMError
from cndpm.learner import Portrait
from cndpm.storage import Appended, replace_file

__all__ = ["RecordError"]


_CHECKSUM = "sha256"
_MOST_BYTES = 1 << 28


class RecordError(CNDPMError, RuntimeError):
    """A record cannot be read or written; the message says why and what to do."""


def write_json(path: Path, content: dict[str, Any], *, sealed: bool = True, beside: Any = None) -> None:
    """Writes a file whole or not at all; RecordError where the folder cannot be written, or the disk is full."""
    seal = {_CHECKSUM: _checksum(content, beside)} if sealed else {}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, [json.dumps(content | seal, indent=2).encode() + b"\n"])
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror or error}") from error


def read_json(path: Path, *, sealed: bool = True, beside: Any = None) -> dict[str, Any]:
    """Returns what :func:`write_json` wrote; RecordError where its checksum is not right, or missing where `sealed`."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise RecordError(f"{path} is damaged: it has {path.stat().st_size} bytes")
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise RecordError(f"{path} is damaged: it holds no JSON object")
        if (seal := content.pop(_CHECKSUM, None)) is None and sealed:
            raise RecordError(f"{path} is damaged: its checksum is missing")
        if seal is not None and seal != _checksum(content, beside):
            raise RecordError(f"{path} is damaged: its checksum does not fit its content")
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is damaged: {str(error)[:200]}") from error
    return content


def _checksum(content: dict[str, Any], beside: Any) -> str:
    plain = json.loads(json.dumps([content, beside]))  # as it will be read: keys are text, tuples are lists
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


Row = dict[str, Any]
"""One event of a log, as plain values by name."""


@dataclass(frozen=True)
class Log:
    """The events of a log."""

    rows: list[Row]  # its events in order, what was repeated after a resumption once
    problems: tuple[str, ...] = ()  # lines that cannot be read


class LogFile:
    """Appends events to a log."""

    def __init__(self, path: Path, salt: int = 0) -> None:
        self._salt = salt
        self._file = Appended(path)
        content = path.read_bytes()
        self._n_lines, self._digest = content.count(b"\n"), hashlib.sha256(content)
        if content and not content.endswith(b"\n"):
            self._write(b"\n")

    @property
    def size(self) -> int:
        """Its length in bytes."""
        return self._file.size

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return self._digest.hexdigest()

    def append(self, event: str, step: int, values: Row) -> Row:
        """Adds one line, for readers to see at once."""
        head = {"event": event, "step": step}
        row = head | values | head
        numbered = {**row, "line": self._n_lines}
        self._write(json.dumps({**numbered, "crc": _crc(numbered, self._salt)}).encode() + b"\n")
        return row

    def sync(self) -> None:
        """Brings everything to the disk."""
        self._file.sync()

    def close(self) -> None:
        """Releases the file."""
        self._file.close()

    def _write(self, content: bytes) -> None:
        self._file.write(content)
        self._digest.update(content)
        self._n_lines += content.count(b"\n")


def digest_of(path: Path, n_bytes: int) -> str | None:
    """Returns the SHA-256 of the first bytes of a file; None where it has fewer."""
    content = path.read_bytes()[:n_bytes] if path.is_file() else b""
    return hashlib.sha256(content).hexdigest() if len(content) == n_bytes else None


def salt_of(config: Row) -> int:
    """Returns the number that the checksums of a run's log begin with."""
    return zlib.crc32(json.dumps(config, sort_keys=True).encode())


def read_log(path: Path, *, salt: int = 0) -> Log:
    """Reads a log, also while it is written to: what its last line lacks may still come."""
    rows: dict[tuple[str, int], tuple[int, Row]] = {}  # by event and step, with the place where the line begins
    problems: list[tuple[int, str]] = []
    *lines, last = path.read_bytes().split(b"\n") if path.is_file() else [b""]
    offset = n_lost = 0
    for n, line in enumerate([*lines, last]):
        row, number = _parse(line, salt)
        if row is not None and number is not None:
            if number != n + n_lost:
                problems.append((offset, f"lines are missing or repeated before line {n + 1}"))
                n_lost = number - n
            if row["event"] == "resume" and type(start := row.pop("from", None)) is int:  # back to its checkpoint
                problems = [problem for problem in problems if problem[0] < start]
                rows = {key: at for key, at in rows.items() if at[0] < start or key[0] == "resume"}
            key = (row["event"], row["step"])
            rows.pop(key, None)  # what was repeated stands where it was repeated
            rows[key] = (offset, row)
        elif n < len(lines):
            problems.append((offset, f"line {n + 1} is damaged"))
        offset += len(line) + 1
    return Log([row for _, row in rows.values()], tuple(text for _, text in problems))


def _parse(line: bytes, salt: int) -> tuple[Row | None, int | None]:
    """Returns the event in a line and the line's number; None for both where that cannot be, or is not as written."""
    try:
        row = json.loads(line)
        crc = row.pop("crc")
        as_written = json.dumps({**row, "crc": crc}).encode() == line and crc == _crc(row, salt)
        number = row.pop("line")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None, None
    is_event = isinstance(row.get("event"), str) and type(row.get("step")) is int and type(number) is int
    return (row, number) if as_written and is_event else (None, None)


def _crc(row: Row, salt: int) -> str:
    return f"{zlib.crc32(json.dumps(row).encode(), salt):08x}"


PORTRAIT = "portrait.npz"
"""The file of a record that holds the portrait of a mixture."""


def save_portrait(folder: Path, portrait: Portrait) -> None:
    """Writes ``portrait.npz``, whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, **vars(portrait))
    try:
        replace_file(folder / PORTRAIT, [content.getvalue()])
    except OSError as error:
        raise RecordError(f"cannot write {folder / PORTRAIT}: {error.strerror or error}") from error


def load_portrait(folder: str | Path) -> Portrait | None:
    """Reads the portrait in a record; None where the run left none, RecordError where the file is damaged."""
    path = Path(folder) / PORTRAIT
    if not path.is_file():
        return None
    try:
        arrays = read_npz(path, [tuple(Portrait.__dataclass_fields__)])
    except DamagedFileError as error:
        raise RecordError(f"{path} is damaged: {error}") from error
    shapes = {name: array.shape for name, array in arrays.items()}
    n, k = shapes["x"][:1], shapes["counts"]
    per_sample = all(shapes[name] == n for name in ("y", "expert", "from_mixture"))
    if not (n and per_sample and len(k) == 1 and shapes["similarity"] == k * 2):
        raise RecordError(f"{path} is damaged: its arrays do not belong together, they have the shapes {shapes}")
    return Portrait(**arrays)  # type: ignore[arg-type]
