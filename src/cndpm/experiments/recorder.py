"""Writes the record of one run: claims a folder for itself, appends events, keeps the last checkpoint, concludes.

Nothing is lost by a crash at any moment: events are on the disk before the checkpoint that follows them, and the
checkpoint and the summary are replaced whole. A folder that cannot be written, or a disk that is full, is reported when
the recorder opens or at the first write that fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout
from safetensors import SafetensorError

from cndpm.experiments.record import (
    CHECKPOINT,
    CONFIG,
    LOCK,
    LOG,
    SCHEMA_VERSION,
    SUMMARY,
    RecordError,
    read_record,
    read_rows,
    write_json,
)
from cndpm.state import State, load_state, save_state

__all__ = ["Recorder", "differing_keys"]

_LOCK_SECONDS = 1.0  # longer than a reader holds the lock to see whether somebody writes


class Recorder:
    """The only writer of a folder.

    Args:
        folder: Created if it is missing.
        config: The resolved configuration as plain values.
        environment: Versions, commit, machine.
        resume: Whether to go on with a record that is there already; its configuration must be the same. Without, a
            folder that holds a record is refused.

    Raises:
        RecordError: The folder cannot be written, is in use, or holds another run.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, Recorder(folder, config={"seed": 0}, environment={}) as record:
        ...     row = record.append("evaluation", 3, accuracy=12.5)
        ...     record.evaluations
        [{'event': 'evaluation', 'step': 3, 'accuracy': 12.5}]
    """

    def __init__(
        self, folder: str | Path, *, config: dict[str, Any], environment: dict[str, Any], resume: bool = False
    ) -> None:
        self.folder, self.environment = Path(folder), environment
        with self._reporting("create"):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.folder / LOCK)
            self._acquire()
        self._is_new = not (self.folder / CONFIG).exists()
        try:
            if not self._is_new:
                self._check_same_run(config, resume=resume)
                self._clear_leftovers()
            else:
                head = {"schema": SCHEMA_VERSION, "config": config, "environment": environment}
                write_json(self.folder / CONFIG, head)
            with self._reporting("write"):
                self._log = _open_log(self.folder / LOG)
        except BaseException:
            self._lock.release()
            raise

    @property
    def summary(self) -> dict[str, Any] | None:
        """The results, if the run is complete."""
        return read_record(self.folder).summary

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        """All evaluations up to now."""
        return [row for row in read_rows(self.folder / LOG) if row["event"] == "evaluation"]

    @property
    def progress(self) -> list[dict[str, Any]]:
        """All lines of progress up to now."""
        return [row for row in read_rows(self.folder / LOG) if row["event"] == "progress"]

    def append(self, event: str, step: int, /, **values: Any) -> dict[str, Any]:
        """Adds one line to the log, for readers to see at once.

        Args:
            event: Its kind.
            step: Batches learned so far.
            **values: Plain values by name; none of them replaces the first two.
        """
        head = {"event": event, "step": step}
        row = head | values | head
        with self._reporting("write"):
            self._log.write(json.dumps(row).encode() + b"\n")
            self._log.flush()
        return row

    def save_checkpoint(self, state: State) -> None:
        """Replaces the checkpoint, once the log that led to it is safely on the disk."""
        with self._reporting("write"):
            os.fsync(self._log.fileno())
            save_state(self.folder / CHECKPOINT, state, kind="checkpoint")

    def load_checkpoint(self) -> State | None:
        """Reads the last checkpoint; None if there is none yet."""
        path = self.folder / CHECKPOINT
        return load_state(path, kind="checkpoint") if path.exists() else None

    def conclude(self, summary: dict[str, Any]) -> None:
        """Writes the results; the run is complete."""
        write_json(self.folder / SUMMARY, summary)

    def discard(self) -> None:
        """Removes a record that this recorder began, and its folder where nothing else is in it; older ones stay."""
        self.close()
        if not self._is_new:
            return
        for name in (CONFIG, LOG, CHECKPOINT, LOCK):
            (self.folder / name).unlink(missing_ok=True)
        self._clear_leftovers()
        with suppress(OSError):  # somebody keeps something else there
            self.folder.rmdir()

    def close(self) -> None:
        """Releases the folder."""
        self._log.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _acquire(self) -> None:
        try:
            self._lock.acquire(timeout=_LOCK_SECONDS)
        except Timeout:
            raise RecordError(
                f"another run is writing to {self.folder}. Wait for it to end, or name another folder with --out."
            ) from None

    def _check_same_run(self, config: dict[str, Any], *, resume: bool) -> None:
        record = read_record(self.folder)
        if not resume:
            raise RecordError(
                f"{self.folder} already holds a run ({record.status if record.summary else 'interrupted'}). "
                "Go on with it by --resume, or name another folder with --out."
            )
        differing = differing_keys(record.config, config)
        if record.summary is not None:  # what is complete may be read anywhere
            differing = [name for name in differing if name != "device"]
        if differing:
            raise RecordError(
                f"{self.folder} holds a run with another configuration; it differs in {', '.join(differing)}. "
                "Resume with the same options, or name another folder with --out."
            )

    def _clear_leftovers(self) -> None:
        """Removes files that a crash left half-written; the whole ones they were to replace are still there."""
        for name in (CONFIG, CHECKPOINT, SUMMARY):
            for leftover in self.folder.glob(f".{name}.*"):
                leftover.unlink(missing_ok=True)

    @contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RecordError(f"cannot {what} the record in {self.folder}: {reason}") from error


def differing_keys(a: dict[str, Any], b: dict[str, Any], prefix: str = "") -> list[str]:
    """Returns the dotted names of all values that differ between two trees of plain values.

    Args:
        a: A tree.
        b: Another.
        prefix: Stands before all names.
    """
    names = []
    for key in sorted(a.keys() | b.keys()):
        left, right = a.get(key), b.get(key)
        if isinstance(left, dict) and isinstance(right, dict):
            names += differing_keys(left, right, f"{prefix}{key}.")
        elif left != right:
            names.append(f"{prefix}{key}")
    return names


def _open_log(path: Path) -> Any:
    """Opens for appending; a line that a crash cut off is ended first, so that the next one stands alone."""
    cut_off = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    log = path.open("ab")
    if cut_off:
        log.write(b"\n")
    return log
