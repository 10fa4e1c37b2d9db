"""Writes the record of one run: claims a folder for itself, appends events, keeps the last checkpoint, concludes.

Nothing is lost by a crash at any moment: events are on the disk before the checkpoint that follows them, and the
checkpoint and the summary are replaced whole. A folder that cannot be written, or a disk that is full, is reported when
the recorder opens or at the first write that fails.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from cndpm.errors import DamageWarning
from cndpm.experiments.checkpoint_file import read_checkpoint_of
from cndpm.experiments.config import differing_keys
from cndpm.experiments.record import (
    CHECKPOINT,
    CONFIG,
    END,
    LOCK,
    LOG,
    PREVIOUS,
    SCHEMA_VERSION,
    SUMMARY,
    RecordError,
    read_head,
    read_record,
    read_summary,
)
from cndpm.experiments.record_files import PORTRAIT, LogFile, read_log, salt_of, write_json
from cndpm.state import State, StateError, save_state
from cndpm.storage import clear_leftovers, make_folder, move_file, remove_file

_DAMAGED = "checkpoint.damaged.cndpm"
_LOCK_SECONDS = 1.0  # longer than a reader holds the lock to see whether somebody writes


class Recorder:
    """The only writer of a folder, which is created if it is missing.

    With `resume` a record that is there already, of the same configuration, goes on; without, it is refused.
    RecordError is raised where the folder cannot be written, is in use, or holds another run.
    """

    def __init__(
        self, folder: str | Path, *, config: dict[str, Any], environment: dict[str, Any], resume: bool = False
    ) -> None:
        self.folder, self.config, self.environment = Path(folder), config, environment
        self._resumed_at: int | None = None
        self._is_closed = False
        with self._reporting("create"):
            make_folder(self.folder)
            self._lock = FileLock(self.folder / LOCK)
            self._acquire()
        self._is_new = not any((self.folder / name).exists() for name in (CONFIG, CHECKPOINT, PREVIOUS))
        try:
            if not self._is_new:
                self._check_same_run(config, resume=resume)
            with self._reporting("write"):
                for name in (CONFIG, CHECKPOINT, SUMMARY, PORTRAIT):
                    clear_leftovers(self.folder / name)
            if not (self.folder / CONFIG).exists():
                head = {"schema": SCHEMA_VERSION, "config": config, "environment": environment}
                write_json(self.folder / CONFIG, head)
            with self._reporting("write"):
                self._salt = salt_of(read_head(self.folder)["config"])
                self._log = LogFile(self.folder / LOG, self._salt)
        except BaseException:
            self._lock.release()
            raise

    @property
    def summary(self) -> dict[str, Any] | None:
        """The results, if the run is complete and they can be read."""
        return read_summary(self.folder, read_head(self.folder))[0]

    def rows(self, event: str) -> list[dict[str, Any]]:
        """Returns all lines of one kind up to now."""
        log = read_log(self.folder / LOG, salt=self._salt)
        return [row for row in log.rows if row["event"] == event]

    def append(self, event: str, step: int, /, **values: Any) -> dict[str, Any]:
        """Adds one line to the log, for readers to see at once."""
        if event == "resume" and self._resumed_at is not None:
            values = {**values, "from": self._resumed_at}
        with self._reporting("write"):
            return self._log.append(event, step, values)

    def save_checkpoint(self, state: State) -> None:
        """Replaces the checkpoint, once the log that led to it is on the disk; the one before stays beside it."""
        with self._reporting("write"):
            self._log.sync()
            made_with = {"config": self.config, "log_bytes": self._log.size, "log_sha256": self._log.digest}
            path, previous = self.folder / CHECKPOINT, self.folder / PREVIOUS
            save_state(path, state, kind="checkpoint", settings=made_with, keep=previous)

    def load_checkpoint(self) -> State | None:
        """Reads the last checkpoint, or the one before where that is damaged; None if there is none yet.

        A log without a checkpoint is begun anew. RecordError: there are checkpoints, and none of them can be used.
        """
        problems: list[str] = []
        for path in (self.folder / CHECKPOINT, self.folder / PREVIOUS):
            if path.exists():
                try:
                    return self._taken_up(path, problems)
                except StateError as error:
                    problems.append(str(error))
        if problems:
            raise RecordError(
                f"{self.folder} has no checkpoint to go on from: {'; '.join(problems)}. Put a good copy in its place, "
                "or run again from the start in another folder."
            )
        if self._log.size:
            self._resumed_at = 0
            self.append("resume", 0, environment=self.environment)
        return None

    def conclude(self, summary: dict[str, Any]) -> None:
        """Ends the log and writes the results; the run is complete.

        The checkpoint before the last one is not needed any more.
        """
        with self._reporting("write"):
            self._log.append(END, int(summary.get("n_batches") or 0), {})
            self._log.sync()
            remove_file(self.folder / PREVIOUS)
        write_json(self.folder / SUMMARY, summary, beside=read_head(self.folder)["config"])

    def discard(self) -> None:
        """Removes a record that this recorder began, and its folder where nothing else is in it; older ones stay."""
        self.close()
        if not self._is_new:
            return
        for name in (CONFIG, LOG, CHECKPOINT, PREVIOUS, LOCK):
            (self.folder / name).unlink(missing_ok=True)
            clear_leftovers(self.folder / name)
        with suppress(OSError):  # somebody keeps something else there
            self.folder.rmdir()

    def close(self) -> None:
        """Releases the folder; once."""
        if not self._is_closed:
            self._is_closed = True
            self._log.close()
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _acquire(self) -> None:
        try:
            self._lock.acquire(timeout=_LOCK_SECONDS)
        except Timeout:
            raise RecordError(
                f"another run is writing to {self.folder}. Wait for it to end, or name another folder with --out."
            ) from None

    def _check_same_run(self, config: dict[str, Any], *, resume: bool) -> None:
        if not (self.folder / CONFIG).exists():
            if resume:  # the checkpoint says itself of which run it is
                return
            raise RecordError(
                f"{self.folder} holds the checkpoint of a run. Go on with it by --resume, or name another folder with "
                "--out."
            )
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

    def _taken_up(self, path: Path, problems: list[str]) -> State:
        """Returns the state in a checkpoint of this run, whose log is as it was; puts a damaged later one aside."""
        file = read_checkpoint_of(path, self.config)
        if problems:
            warnings.warn(
                f"{'; '.join(problems)}. The checkpoint before it is used: {path}", DamageWarning, stacklevel=4
            )
            with self._reporting("write"):
                move_file(self.folder / CHECKPOINT, self.folder / _DAMAGED)
        self._resumed_at = file.settings.get("log_bytes")
        return file.state

    @contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RecordError(f"cannot {what} the record in {self.folder}: {error.strerror or error}") from error
