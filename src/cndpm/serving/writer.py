"""Learning of a served model: one thread, a queue, and no acknowledgement before the rows are on the disk.

Requests that wait are learned together, in one call and one record. The model refuses rows that it cannot learn, and is
then as it was before; where several requests were tried together, each is tried by itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.errors import CNDPMError
from cndpm.estimators.classifier import CNDPMClassifier
from cndpm.serving.limits import Limits
from cndpm.serving.row_log import Acknowledgement, rows_digest
from cndpm.serving.store import Store, learn_rows


class BusyError(CNDPMError, RuntimeError):
    """Too many rows wait to be learned; the request may come again later."""


class OtherRowsError(CNDPMError, ValueError):
    """A request has the id of another one, which had other rows."""


class WriterFailedError(CNDPMError, RuntimeError):
    """Learned rows could not be written; the server learns nothing more until it is started again."""


@dataclass(frozen=True)
class LearnRequest:
    """Rows that one client wants learned."""

    X: NDArray[np.float32]  # rows as the model reads them, (n, width)
    y: Sequence[Any] | None  # labels or targets, n of them; None for densities
    name: str | None = None  # the client's id of this request, if it has one: the same id is not learned twice
    future: Future[Acknowledgement] = field(default_factory=Future)  # is given the place of the rows


class Writer:
    """Learns rows one request after another, of a store whose model nobody else may change.

    `learned` is told the number of rows that were written, `checkpointed` of every checkpoint; `n_waiting` rows wait.
    """

    def __init__(
        self,
        store: Store,
        limits: Limits | None = None,
        *,
        learned: Callable[[int], None] = lambda _: None,
        checkpointed: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._limits = store, limits or Limits()
        self._learned, self._checkpointed = learned, checkpointed
        self._waiting: deque[LearnRequest] = deque()
        self.n_waiting = 0  # rows
        self._changed = threading.Condition()  # its lock may be taken again by the thread that has it
        self._is_closing = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="cndpm-writer", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> Exception | None:
        """The error after which nothing more is learned; None while all is well."""
        if self._failure is None and not self._thread.is_alive() and not self._is_closing:
            return WriterFailedError("the thread that learns has ended")
        return self._failure

    def submit(self, request: LearnRequest) -> Future[Acknowledgement]:
        """Puts rows in the queue; the result comes when they are learned and on the disk.

        BusyError: too many rows wait. WriterFailedError: an earlier record could not be written.
        """
        with self._changed:
            if (failure := self.failure) is not None:
                raise WriterFailedError(f"learned rows could not be written: {failure}. Start the server again.")
            if self._is_closing:
                raise BusyError("the server is being stopped")
            if self.n_waiting and self.n_waiting + len(request.X) > self._limits.waiting_rows:
                raise BusyError(f"{self.n_waiting} rows wait to be learned; come again later")
            self._waiting.append(request)
            self.n_waiting += len(request.X)
            self._changed.notify()
        return request.future

    def close(self) -> None:
        """Learns what waits, writes a checkpoint where something was learned, and releases the folder."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()
        try:
            if self._store.n_rows_since and self.failure is None:
                self._store.checkpoint()
                self._checkpointed()
        finally:
            self._store.close()

    # The thread

    def _run(self) -> None:
        requests: list[LearnRequest] = []
        try:
            while requests := self._take():
                self._learn_new(requests)
                if self._store.is_due and self._failure is None:
                    self._guarded(self._store.checkpoint)
                    if self._failure is None:
                        self._checkpointed()
        except BaseException as error:  # whoever waits must hear of it
            self._fail(error, requests)

    def _fail(self, error: BaseException, requests: Sequence[LearnRequest]) -> None:
        with self._changed:
            self._failure = error if isinstance(error, Exception) else WriterFailedError(repr(error))
            left = [*requests, *self._waiting]
            self._waiting.clear()
        for request in left:
            if not request.future.done():
                self._refuse([request], WriterFailedError(f"nothing more is learned: {error!r}"))

    def _take(self) -> list[LearnRequest]:
        """Returns the next requests, in the order in which they came; none when all is done and closed.

        Those whose clients have gone before their turn are left out; from here on they cannot be cancelled.
        """
        with self._changed:
            taken: list[LearnRequest] = []
            n_rows = 0
            while not taken:
                self._changed.wait_for(lambda: self._waiting or self._is_closing)
                if not self._waiting:
                    break
                while self._waiting and (not taken or n_rows + len(self._waiting[0].X) <= self._limits.batch_rows):
                    request = self._waiting.popleft()
                    if request.future.set_running_or_notify_cancel():
                        taken.append(request)
                        n_rows += len(request.X)
                    else:
                        self._count_out(request)
            return taken

    def _learn_new(self, requests: Sequence[LearnRequest]) -> None:
        """Learns requests but for those that were learned before; their clients did not hear of it."""
        new: dict[object, LearnRequest] = {}
        again = []
        for request in requests:
            if request.name in self._store.known or request.name in new:
                again.append(request)
            else:
                new[object() if request.name is None else request.name] = request
        if new:
            self._learn(list(new.values()))
        for request in again:
            assert request.name is not None
            if request.name in self._store.known:
                self._answer_again(request, self._store.known[request.name])
            else:  # the first of the same id was refused
                self._learn([request])

    def _answer_again(self, request: LearnRequest, place: Acknowledgement) -> None:
        if place.digest == rows_digest(request.X, request.y):
            self._acknowledge(request, place)
        else:
            other = f"the id {request.name!r} belongs to other rows, which were learned as record {place.record}"
            self._refuse([request], OtherRowsError(f"{other}. Use another."))

    def _learn(self, requests: Sequence[LearnRequest]) -> None:
        if self._failure is not None:
            self._refuse(requests, WriterFailedError(f"an earlier record could not be written: {self._failure}"))
            return
        X = np.concatenate([request.X for request in requests])
        y = None if requests[0].y is None else [target for request in requests for target in request.y or ()]
        try:
            self._admit_labels(y)
            learn_rows(self._store.model, X, y)
        except Exception as error:
            if len(requests) == 1:
                self._refuse(requests, error)
            else:
                for request in requests:
                    self._learn([request])
            return
        self._write(requests, X, y)

    def _admit_labels(self, y: Sequence[Any] | None) -> None:
        """Refuses labels beyond those that a model may come to know: each takes memory, and a place in every answer."""
        if not isinstance(self._store.model, CNDPMClassifier):
            return
        known = self._store.model._codec
        hashable = {label for label in y or () if not isinstance(label, list)}  # the model refuses lists by name
        new = [label for label in hashable if known.find(label) is None]
        if new and len(known) + len(new) > self._limits.labels:
            raise ValueError(
                f"y has {len(new)} new labels beside the {len(known)} that the model knows; this server allows "
                f"{self._limits.labels} in all (--max-labels). To predict numbers, serve a regressor."
            )
        if new and sum(len(str(label)) for label in (*known.labels, *new)) > self._limits.label_characters:
            raise ValueError(
                f"the labels of a model have {self._limits.label_characters} characters together at most, and y would "
                "bring more. Shorten them, or number them."
            )

    def _write(self, requests: Sequence[LearnRequest], X: NDArray[np.float32], y: Sequence[Any] | None) -> None:
        """Writes what was learned and acknowledges it; a model that is ahead of its log must learn no more."""
        places = self._guarded(lambda: self._store.append(X, y, [(each.name, len(each.X)) for each in requests]))
        if self._failure is not None:
            self._refuse(requests, WriterFailedError(f"the rows could not be written: {self._failure}"))
            return
        self._learned(len(X))
        for request, (_, place) in zip(requests, places, strict=True):
            self._acknowledge(request, place)

    def _guarded(self, write: Callable[[], Any]) -> Any:
        try:
            return write()
        except Exception as error:
            self._failure = error
            return None

    # Rows stop waiting before their client hears of it, who may ask at once how many wait.

    def _acknowledge(self, request: LearnRequest, place: Acknowledgement) -> None:
        self._count_out(request)
        request.future.set_result(place)

    def _refuse(self, requests: Sequence[LearnRequest], error: Exception) -> None:
        for request in requests:
            self._count_out(request)
            request.future.set_exception(error)

    def _count_out(self, request: LearnRequest) -> None:
        with self._changed:
            self.n_waiting -= len(request.X)
