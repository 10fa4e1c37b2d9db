"""A served model on disk: checkpoints, the log of rows learned since, and the way back to the model after a crash.

The folder holds ``model-N.cndpm``, the model after N records, and ``log-N.jsonl``, the records from N on. A checkpoint
is written whole, a new log is begun, and of older ones the last is kept: should the newest checkpoint be damaged, the
one before it and two logs give the same model. Learning a record again gives the same bits, so a model that comes back
is the one that was lost, up to what had not been acknowledged.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from cndpm.errors import CNDPMError, DamageWarning
from cndpm.estimators.base import Estimator
from cndpm.estimators.merging import load_estimator
from cndpm.serving.row_log import Acknowledgement, LogError, Record, RowLog, read_log
from cndpm.state import StateError
from cndpm.storage import clear_leftovers, make_folder, remove_file, replace_file

__all__ = ["Store", "StoreError", "learn_rows"]

_KEPT = 2
"""Checkpoints and logs that are kept."""

_REMEMBERED = 10_000
"""Requests whose ids are known, the latest: one that comes again is acknowledged again and not learned twice."""


class StoreError(CNDPMError, RuntimeError):
    """A folder of a served model cannot be used; the message says why and what to do."""


def learn_rows(model: Estimator, X: NDArray[np.float32], y: Sequence[Any] | None) -> None:
    """Has a model of any kind learn rows, the same way when they come and when they are read from a log.

    Args:
        model: Is changed.
        X: (n, n_features).
        y: Labels or targets, n of them; None for densities.
    """
    if y is None:
        model.partial_fit(X)
    else:
        model.partial_fit(X, list(y))


class Store:
    """Keeps a served model such that acknowledged rows survive a crash.

    Args:
        origin: File of the model that is served first.
        folder: Where checkpoints and logs lie; where there are some, the model goes on from them.
        checkpoint_rows: Rows learned between two checkpoints.

    Attributes:
        model: The model, all records learned.
        n_records: Records learned so far.
        known: The latest requests that had an id.

    Raises:
        StoreError: The folder belongs to another model or server, or cannot be read.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from cndpm import CNDPMDensity
        >>> X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "model.cndpm")
        ...     CNDPMDensity(random_state=0).fit(X).save(path)
        ...     store = Store(path, Path(folder, "served"))
        ...     learn_rows(store.model, X[:5], None)
        ...     store.append(X[:5], None, [("mine", 5)])
        ...     store.close()
        ...     again = Store(path, Path(folder, "served"))
        ...     again.n_records, again.model.learner_.events.n_samples, again.known["mine"]
        ...     again.close()
        [('mine', Acknowledgement(record=0, row=0))]
        (1, 65, Acknowledgement(record=0, row=0))
    """

    def __init__(self, origin: Path, folder: Path, *, checkpoint_rows: int = 10_000) -> None:
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
            self._open(origin)
        except BaseException:
            self._lock.release()
            raise

    def append(
        self, X: NDArray[np.float32], y: Sequence[Any] | None, requests: Sequence[tuple[str | None, int]]
    ) -> list[tuple[str | None, Acknowledgement]]:
        """Writes rows that the model has learned in one call; they are on the disk when this returns.

        Args:
            X: (n, n_features).
            y: Labels or targets, n of them; None for densities.
            requests: For every request, in their order, its id and the number of its rows.

        Returns:
            The id of every request with the place of its rows.
        """
        record = Record(self.n_records, X, None if y is None else list(y), tuple(requests))
        self._log.append(record)
        return self._note(record)

    @property
    def is_due(self) -> bool:
        """Whether enough was learned since the last checkpoint for another one."""
        return self.n_rows_since >= self.checkpoint_rows

    @property
    def log_bytes(self) -> int:
        """Length of the log since the last checkpoint."""
        return self._log.n_bytes

    def checkpoint(self) -> None:
        """Writes the model and begins a new log; of older ones the last is kept."""
        self.model.save(self._path("model", self.n_records))
        self._log.close()
        self._begin_log()

    def close(self) -> None:
        """Releases the folder; what was learned since the last checkpoint is in the log."""
        self._log.close()
        self._lock.release()

    # Inside

    def _open(self, origin: Path) -> None:
        identity = _digest(origin)
        mark = self.folder / "origin"
        if not mark.exists():
            self.model, self.n_records = load_estimator(origin), 0
            self.model.save(self._path("model", 0))
            replace_file(mark, [identity.encode()])
        elif mark.read_text() != identity:
            raise StoreError(
                f"{self.folder} goes on from another model than {origin}. Name another --folder, or move this one away."
            )
        else:
            self._recover()
        self._begin_log()

    def _recover(self) -> None:
        self.model, self.n_records = self._newest_model()
        n_checkpoint = self.n_records
        for number in self._numbers("log"):
            known, records = read_log(self._path("log", number))
            self.known |= known
            for record in records:
                if record.number > self.n_records:
                    raise LogError(f"{self.folder}: records {self.n_records} to {record.number - 1} are missing")
                if record.number == self.n_records:
                    learn_rows(self.model, record.X, record.y)
                    self._note(record)
                else:
                    self._remember(record)
        if self.n_records > n_checkpoint:
            self.model.save(self._path("model", self.n_records))

    def _newest_model(self) -> tuple[Estimator, int]:
        problems = []
        for number in reversed(self._numbers("model")):
            clear_leftovers(self._path("model", number))
            try:
                model = load_estimator(self._path("model", number))
            except StateError as error:
                problems.append(str(error))
                continue
            if problems:
                warnings.warn(f"an older checkpoint and its log were used: {problems[0]}", DamageWarning, stacklevel=2)
            return model, number
        raise StoreError(f"{self.folder} has no checkpoint that can be read: {'; '.join(problems) or 'there is none'}")

    def _begin_log(self) -> None:
        path = self._path("log", self.n_records)
        remove_file(path)  # of a process that was killed after a checkpoint: it holds no record
        self._log = RowLog(path, self.n_records, self.known)
        self.n_rows_since = 0
        kept = self._numbers("model")[-_KEPT:]
        for kind in ("log", "model"):
            for number in self._numbers(kind):
                if number < kept[0]:
                    remove_file(self._path(kind, number))

    def _note(self, record: Record) -> list[tuple[str | None, Acknowledgement]]:
        self.n_records = record.number + 1
        self.n_rows_since += len(record.X)
        return self._remember(record)

    def _remember(self, record: Record) -> list[tuple[str | None, Acknowledgement]]:
        places = record.acknowledgements()
        self.known |= {name: place for name, place in places if name is not None}
        while len(self.known) > _REMEMBERED:
            del self.known[next(iter(self.known))]
        return places

    def _numbers(self, kind: str) -> list[int]:
        """Returns the numbers of the checkpoints or logs there are, ascending."""
        names = [path.stem.partition("-")[2] for path in self.folder.glob(f"{kind}-*")]
        return sorted(int(name) for name in names if name.isdecimal())

    def _path(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}-{number:012d}.{'cndpm' if kind == 'model' else 'jsonl'}"


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"cannot read the model {path}: {error.strerror or error}") from error
