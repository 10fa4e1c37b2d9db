"""A served model on disk: checkpoints, the log of rows learned since, and the way back to the model after a crash.

The folder holds ``model-N.cndpm``, the model after N records, and ``log-N.jsonl``, the records from N on. A checkpoint
is written whole, a new log is begun, and two checkpoints that can be read are kept, the served file being the first of
all: should the newest be damaged, the one before it and two logs give the same model. Learning a record again gives the
same bits, so a model that comes back is the one that was lost, up to what had not been acknowledged. A damaged log is
refused; a damaged file without which the model is there gets another name, ``.damaged`` behind its own.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from cndpm.errors import CNDPMError, DamageWarning
from cndpm.estimators.base import Estimator
from cndpm.estimators.merging_models import load_estimator
from cndpm.estimators.readers import ReadRows
from cndpm.serving.row_log import Acknowledgement, LogError, Record, RowLog, WrittenLog, witness_of
from cndpm.state import StateError
from cndpm.state.container import has_right_checksum
from cndpm.storage import clear_leftovers, make_folder, move_file, remove_file, replace_file

__all__ = ["Store", "StoreError"]

_KEPT = 2
"""Checkpoints that can be read, and the logs since, that are kept."""

_REMEMBERED = 10_000
"""Requests whose ids are known, the latest: one that comes again is acknowledged again and not learned twice."""


class StoreError(CNDPMError, RuntimeError):
    """A folder of a served model cannot be used; the message says why and what to do."""


def learn_rows(model: Estimator, X: NDArray[np.float32], y: Sequence[Any] | None) -> None:
    """Has a model of any kind learn rows (n, width), the same way when they come and when they are read from a log."""
    read: Any = ReadRows(X)
    if y is None:
        model.partial_fit(read)
    else:
        model.partial_fit(read, list(y))


class Store:
    """Keeps a served model such that acknowledged rows survive a crash.

    Args:
        origin: File of the model that is served first.
        folder: Where checkpoints and logs lie; where there are some, the model goes on from them.
        checkpoint_rows: Rows learned between two checkpoints.
        salvage: Whether to go on without the records that a damaged log has lost, instead of refusing it.

    Attributes:
        model: The model, all records learned.
        n_records: Records learned so far.
        known: The latest requests that had an id.

    Raises:
        StoreError: The folder belongs to another model or server, or cannot be read.
        CNDPMError: A log is damaged, or acknowledged records are missing.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from cndpm import CNDPMDensity
        >>> X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
        >>> with TemporaryDirectory() as folder:
        ...     CNDPMDensity(random_state=0).fit(X).save(f"{folder}/model.cndpm")
        ...     store = Store(Path(folder, "model.cndpm"), Path(folder, "served"))
        ...     learn_rows(store.model, X[:5], None)
        ...     store.append(X[:5], None, [("mine", 5)])
        ...     store.close()
        [('mine', Acknowledgement(record=0, row=0))]
    """

    model: Estimator
    n_records: int
    _log: RowLog

    def __init__(self, origin: Path, folder: Path, *, checkpoint_rows: int = 10_000, salvage: bool = False) -> None:
        self.folder, self.checkpoint_rows = folder, checkpoint_rows
        self.known: dict[str, Acknowledgement] = {}
        self.n_rows_since = 0
        try:
            make_folder(folder)
            self._lock = FileLock(folder / "lock", timeout=0, thread_local=False)  # another thread releases it
            self._lock.acquire()
        except Timeout:
            raise StoreError(f"{folder} is in use by another server. Stop it, or name another --folder.") from None
        except OSError as error:
            raise StoreError(f"cannot write {folder}: {error.strerror or error}. Name another --folder.") from error
        try:
            self._open(origin, salvage=salvage)
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise StoreError(f"cannot use {folder}: {error}. Name another --folder.") from error
            raise

    def append(
        self, X: NDArray[np.float32], y: Sequence[Any] | None, requests: Sequence[tuple[str | None, int]]
    ) -> list[tuple[str | None, Acknowledgement]]:
        """Brings rows that the model has learned to the disk; returns every request's id with the place of its rows.

        Args:
            X: (n, n_features).
            y: Labels or targets, n of them; None for densities.
            requests: For every request, in their order, its id and the number of its rows.
        """
        record = Record(self.n_records, X, None if y is None else list(y), tuple(requests))
        self._log.append(record)
        self.n_records += 1
        self.n_rows_since += len(X)
        places = record.acknowledgements()
        self._remember(dict(places))
        return places

    @property
    def is_due(self) -> bool:
        """Whether enough was learned since the last checkpoint for another one."""
        return self.n_rows_since >= self.checkpoint_rows

    @property
    def log_bytes(self) -> int:
        """Length of the log since the last checkpoint."""
        return self._log.n_bytes

    def checkpoint(self) -> None:
        """Writes the model, where it has learned since the last time, and begins a new log."""
        if not self.n_rows_since:
            return
        self.model.save(self._model_path(self.n_records))
        self._log.close()
        self._link = self._log.link
        self._begin_log()

    def close(self) -> None:
        """Releases the folder; what was learned since the last checkpoint is in the log."""
        self._log.close()
        self._lock.release()

    # Inside

    def _open(self, origin: Path, *, salvage: bool) -> None:
        self._origin, self._link = origin, _digest(origin)
        mark = self.folder / "origin"
        if not mark.is_file() and (self._numbers("log") or self._numbers("model")):
            raise StoreError(f"{mark}, which says whose checkpoints and logs these are, is missing. Restore it.")
        if not mark.is_file():
            self.model, self.n_records = load_estimator(origin), 0
            replace_file(mark, [self._link.encode()])
        elif mark.read_bytes() != self._link.encode():
            raise StoreError(f"{self.folder} goes on from another model than {origin}. Name another --folder.")
        else:
            self._recover(salvage=salvage)
        self._begin_log()

    def _recover(self, *, salvage: bool) -> None:
        self.model, self.n_records, problems = self._newest_model()
        n_checkpoint, damaged = self.n_records, list(problems)
        try:
            self._replay()
        except LogError as error:
            if not salvage:
                remedy = "Nothing was changed. Restore the file from a copy, or go on without what is lost: --salvage"
                raise LogError(f"{error}. {remedy}") from error
            warnings.warn(f"{error}; went on with {self.n_records} records", DamageWarning, stacklevel=2)
            logs = map(self._log_path, self._numbers("log"))
            damaged += [path for log in logs for path in (witness_of(log), log) if path.exists()]
        if problems:
            said = next(iter(problems.values()))
            warnings.warn(f"an older checkpoint and its log were used: {said}", DamageWarning, stacklevel=2)
        for path in damaged:
            names = (path.with_name(f"{path.name}.damaged{f'-{n}' if n > 1 else ''}") for n in count(1))
            move_file(path, next(name for name in names if not name.exists()))  # one put aside before keeps its own
        if self.n_records > n_checkpoint:
            self.model.save(self._model_path(self.n_records))

    def _replay(self) -> None:
        """Learns what the logs hold and the checkpoint does not; every log must begin where the one before it ends."""
        end: int | None = None
        for number in self._numbers("log"):
            log = WrittenLog(self._log_path(number))
            if number > (self.n_records if end is None else end):
                raise LogError(f"{self.folder}: records before {number} are missing")
            if log.first not in (None, number) or (log.first is not None and end not in (None, number)):
                raise LogError(f"{log.path} begins with record {log.first}, not with {number}")
            if log.first is not None and (number == 0 or end is not None) and log.before != self._link:
                raise LogError(f"{log.path} does not go on from the log before it")
            self._remember(log.known)
            end = number
            for record in log:
                if record.number == self.n_records:
                    try:
                        learn_rows(self.model, record.X, record.y)
                    except (ValueError, TypeError, RuntimeError) as error:
                        raise LogError(f"record {record.number} of {log.path} cannot be learned: {error}") from error
                    self.n_records += 1
                self._remember(dict(record.acknowledgements()))
                end += 1
            if log.first is not None:
                self._link = log.link if end > number else log.before  # one without records is begun again
        if end is not None and end < self.n_records:
            raise LogError(f"{self.folder}: records {end} to {self.n_records - 1} are missing")

    def _newest_model(self) -> tuple[Estimator, int, dict[Path, StateError]]:
        """Returns the model of the newest checkpoint that can be read, its number, and what ails newer ones."""
        problems: dict[Path, StateError] = {}
        for number in reversed([0, *self._numbers("model")]):
            path = self._model_path(number)
            clear_leftovers(path)
            try:
                model = load_estimator(path)
                self._admit(number, path)
            except StateError as error:
                problems[path] = error
                continue
            return model, number, problems
        raise StoreError(f"{self.folder} has no checkpoint that can be read: {'; '.join(map(str, problems.values()))}")

    def _admit(self, number: int, path: Path) -> None:
        """Refuses a checkpoint that is whole and another one than the log of its number goes on from."""
        log = self._log_path(number)
        with suppress(LogError):  # which is told of when the log is read
            if number and WrittenLog(log).model not in (None, _digest(path)):
                raise StateError(f"{path} is another one than {log.name} goes on from")

    def _begin_log(self) -> None:
        path = self._log_path(self.n_records)
        _remove_log(path)  # of a process that was killed after a checkpoint: no record is in it
        self._log = RowLog(path, self.n_records, self.known, self._link, _digest(self._model_path(self.n_records)))
        self.n_rows_since = 0
        self._remove_old()

    def _remove_old(self) -> None:
        """Removes checkpoints, and logs, from before the last ones that can be read."""
        kept = 0
        for number in reversed(self._numbers("model")):
            if kept == _KEPT:
                remove_file(self._model_path(number))
            elif _is_whole(self._model_path(number)):
                kept, oldest = kept + 1, number
        if kept == _KEPT:
            for number in self._numbers("log"):
                if number < oldest:
                    _remove_log(self._log_path(number))

    def _remember(self, places: Mapping[str | None, Acknowledgement]) -> None:
        self.known |= {name: place for name, place in places.items() if name is not None}
        while len(self.known) > _REMEMBERED:
            del self.known[next(iter(self.known))]

    def _numbers(self, kind: str) -> list[int]:
        """Returns the numbers of the checkpoints or logs there are, ascending; a witness stands for a log."""
        names = {path.stem.partition("-")[2] for path in self.folder.glob(f"{kind}-*")}
        return sorted(int(name) for name in names if name.isdecimal() and f"{int(name):012d}" == name)

    def _model_path(self, number: int) -> Path:
        return self.folder / f"model-{number:012d}.cndpm" if number else self._origin

    def _log_path(self, number: int) -> Path:
        return self.folder / f"log-{number:012d}.jsonl"


def _remove_log(path: Path) -> None:
    """Removes a log; its witness first, which alone would say that the log has lost everything."""
    remove_file(witness_of(path))
    remove_file(path)


def _is_whole(path: Path) -> bool:
    """Tells whether a checkpoint is as it was written."""
    with path.open("rb") as file:
        return has_right_checksum(file, path.stat().st_size)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"cannot read the model {path}: {error.strerror or error}") from error
