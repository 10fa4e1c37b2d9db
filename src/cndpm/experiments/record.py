"""Reads what a run leaves behind, also while the run goes on.

A record is a folder:

    config.json        the resolved configuration, seed, versions, commit; written once, before anything is learned
    log.jsonl          one line per event, only ever appended to: "start", "progress", "evaluation",
                       "window", "resume"
    checkpoint.cndpm   the learner after some batch (after the last one, once the run is complete); replaced whole
    checkpoint.previous.cndpm    the checkpoint before that, in case the last one is damaged
    portrait.npz       of a mixture: samples drawn from it and the experts' similarity, at the end of the run
    summary.json       the results; its presence says that the run is complete
    lock               held by the process that writes, and released by the system however that process ends

Every file, and every line of the log, carries a checksum. What is damaged is named in `Record.problems`, and the rest
is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from cndpm.experiments.record_files import RecordError, Row, read_json, read_log, salt_of

__all__ = ["Record", "RecordError", "find_records", "read_record"]

SCHEMA_VERSION = 2
"""The version of the form of records."""

CONFIG, LOG, CHECKPOINT, SUMMARY, LOCK = "config.json", "log.jsonl", "checkpoint.cndpm", "summary.json", "lock"
"""The names of a record's files."""

PREVIOUS = "checkpoint.previous.cndpm"
"""The checkpoint before the last one."""

END = "end"
"""The last event of a complete run: a log that lacks it has lost something."""

_HEAD = {"schema", "config", "environment"}
Status = Literal["complete", "running", "interrupted"]


@dataclass(frozen=True)
class Record:
    """One run, as far as it has got.

    Attributes:
        folder: Where it lies.
        config: The resolved configuration, as plain values.
        environment: Versions, commit, machine and device.
        rows: Every event of the log, in order, without what a resumption repeated.
        summary: The results; None until the run is complete.
        status: "complete"; "running" while a process writes to it; otherwise "interrupted".
        problems: What is damaged and could not be read, by file.

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
    problems: tuple[str, ...] = ()

    @property
    def evaluations(self) -> list[Row]:
        """The rows of all evaluations."""
        return [row for row in self.rows if row["event"] == "evaluation"]

    def column(self, name: str, event: str = "evaluation") -> list[Any]:
        """Returns one value per row; None where a row has no such value.

        Args:
            name: Of the value.
            event: "evaluation", "progress" or "window".
        """
        return [row.get(name) for row in self.rows if row["event"] == event]


def read_record(folder: str | Path) -> Record:
    """Reads the record of a run that is complete, running or interrupted.

    A summary or a log that is damaged leaves the rest readable; see `Record.problems`.

    Raises:
        RecordError: There is no record, its configuration is damaged, or it was written by a version that this one does
            not understand.
    """
    folder = Path(folder)
    head = read_head(folder)
    # The status comes first: a run that ends in between is then read as running with its summary, never without.
    running = _is_locked(folder / LOCK)
    summary, problems = read_summary(folder, head)
    status: Status = "complete" if summary is not None else "running" if running else "interrupted"
    log = read_log(folder / LOG, salt=salt_of(head["config"]))
    problems += [f"{folder / LOG}: {problem}" for problem in log.problems]
    rows = [row for row in log.rows if row["event"] != END]
    if summary is not None and (not log.rows or log.rows[-1]["event"] != END):
        problems.append(f"{folder / LOG} is damaged: its end is missing")
    return Record(folder, head["config"], head["environment"], rows, summary, status, tuple(problems))


def read_head(folder: Path) -> dict[str, Any]:
    """Reads the configuration and the environment of a run; RecordError for none, damaged ones or another schema."""
    path = folder / CONFIG
    if not path.is_file():
        raise RecordError(f"no record in {folder}: it has no {CONFIG}")
    head = read_json(path, sealed=False)  # first of all, whether this version reads it
    schema = head.get("schema")
    if type(schema) is not int or schema != SCHEMA_VERSION:
        by = head.get("environment", {}).get("cndpm") if isinstance(head.get("environment"), dict) else None
        raise RecordError(
            f"{path} has schema {str(schema)[:20]}; this version of cndpm reads schema {SCHEMA_VERSION}"
            + (f". Install cndpm=={by} to read it" if isinstance(by, str) else "")
        )
    if head.keys() != _HEAD or not all(isinstance(head[part], dict) for part in ("config", "environment")):
        raise RecordError(f"{path} is damaged: it must have {', '.join(sorted(_HEAD))}; it has {sorted(head)[:9]}")
    return read_json(path)


def read_summary(folder: Path, head: dict[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """Returns the results of a run, None where none can be read, and what is wrong with them."""
    path = folder / SUMMARY
    if not path.is_file():
        return None, []
    try:
        return read_json(path, beside=head["config"]), []
    except RecordError as error:
        return None, [f"{error}. Resume the run to have it written again"]


def find_records(folder: str | Path) -> list[Path]:
    """Returns the folders of all records under `folder`, itself included, in order of their names."""
    return sorted(path.parent for path in Path(folder).rglob(CONFIG))


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
