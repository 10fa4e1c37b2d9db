"""Reads what a run leaves behind, also while the run goes on.

A record is a folder:

    config.json        the resolved configuration, seed, versions, commit; written once, before anything is learned
    log.jsonl          one line per event, only ever appended to: "start", "progress", "evaluation", "resume"
    checkpoint.cndpm   the learner after some batch (after the last one, once the run is complete); replaced whole
    portrait.npz       of a mixture: samples drawn from it and the experts' similarity, at the end of the run
    summary.json       the results; its presence says that the run is complete
    lock               held by the process that writes, and released by the system however that process ends

A line that was cut off by a crash is skipped. A run that resumes repeats the batches after its last checkpoint; its
"resume" line says from where, and what the log held beyond that point is dropped on reading. Of two evaluations at the
same step the later one counts.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from cndpm.experiments.config import completed

__all__ = [
    "CHECKPOINT",
    "CONFIG",
    "LOCK",
    "LOG",
    "SCHEMA_VERSION",
    "SUMMARY",
    "Record",
    "RecordError",
    "find_records",
    "read_record",
    "read_rows",
    "write_json",
]

SCHEMA_VERSION = 1
"""The version of the form of records."""

CONFIG, LOG, CHECKPOINT, SUMMARY, LOCK = "config.json", "log.jsonl", "checkpoint.cndpm", "summary.json", "lock"
"""The names of a record's files."""

Row = dict[str, Any]
Status = Literal["complete", "running", "interrupted"]


class RecordError(RuntimeError):
    """A record cannot be read or written; the message says why and what to do."""


@dataclass(frozen=True)
class Record:
    """One run, as far as it has got.

    Attributes:
        folder: Where it lies.
        config: The resolved configuration, as plain values; settings that have come since are at their defaults.
        environment: Versions, commit, machine and device.
        rows: Every event of the log, in order, without what a resumption repeated.
        summary: The results; None until the run is complete.
        status: "complete"; "running" while a process writes to it; otherwise "interrupted".

    Example:
        >>> rows = [{"event": "evaluation", "step": 10, "accuracy": 50.0}, {"event": "progress", "step": 12}]
        >>> record = Record(Path("runs/mine"), {}, {}, rows, summary=None, status="running")
        >>> record.column("accuracy"), record.column("step", "progress")
        ([50.0], [12])
    """

    folder: Path
    config: dict[str, Any]
    environment: dict[str, Any]
    rows: list[Row]
    summary: dict[str, Any] | None
    status: Status

    @property
    def evaluations(self) -> list[Row]:
        """The rows of all evaluations."""
        return [row for row in self.rows if row["event"] == "evaluation"]

    def column(self, name: str, event: str = "evaluation") -> list[Any]:
        """Returns one value per row; None where a row has no such value.

        Args:
            name: Of the value.
            event: "evaluation" or "progress".
        """
        return [row.get(name) for row in self.rows if row["event"] == event]


def read_record(folder: str | Path) -> Record:
    """Reads the record of a run that is complete, running or interrupted.

    Raises:
        RecordError: There is no record, or it was written by a version that this one does not understand.
    """
    folder = Path(folder)
    config_file = folder / CONFIG
    if not config_file.is_file():
        raise RecordError(f"no record in {folder}: it has no {CONFIG}")
    try:
        head = json.loads(config_file.read_text())
    except json.JSONDecodeError as error:
        raise RecordError(f"{config_file} is damaged: {error}") from error
    if head.get("schema") != SCHEMA_VERSION:
        raise RecordError(
            f"{config_file} has schema {head.get('schema')}; this version of cndpm reads schema {SCHEMA_VERSION}"
        )
    # The status comes first: a run that ends in between is then read as running with its summary, never without.
    running = _is_locked(folder / LOCK)
    summary_file = folder / SUMMARY
    summary = json.loads(summary_file.read_text()) if summary_file.is_file() else None
    status: Status = "complete" if summary is not None else "running" if running else "interrupted"
    return Record(folder, completed(head["config"]), head["environment"], read_rows(folder / LOG), summary, status)


def find_records(folder: str | Path) -> list[Path]:
    """Returns the folders of all records under `folder`, itself included, in order of their names."""
    return sorted(path.parent for path in Path(folder).rglob(CONFIG))


def read_rows(log: Path) -> list[Row]:
    """Reads the events of a log: cut-off lines are skipped, and what was repeated after a resumption counts once."""
    if not log.is_file():
        return []
    rows: dict[tuple[str, int], Row] = {}
    for line in log.read_text(errors="replace").splitlines():
        row = _parse_line(line)
        if row is None:
            continue
        if row["event"] == "resume":
            rows = {key: kept for key, kept in rows.items() if kept["step"] <= row["step"]}
        key = (row["event"], row["step"])
        rows.pop(key, None)  # what was repeated stands where it was repeated
        rows[key] = row
    return list(rows.values())


def _parse_line(line: str) -> Row | None:
    """Parses one line; None for a line that a crash cut off."""
    try:
        row: Row = json.loads(line)
    except json.JSONDecodeError:
        return None
    return row


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes a file whole or not at all.

    Args:
        path: Of the file.
        content: Plain values by name.

    Raises:
        RecordError: The folder cannot be written, or the disk is full.
    """
    try:
        _replace_file(path, json.dumps(content, indent=2) + "\n")
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror}") from error


def _replace_file(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    try:
        with FileLock(path).acquire(blocking=False):
            return False
    except Timeout:
        return True
    except OSError:  # a folder that we may only read: whether somebody writes to it cannot be told
        return False
