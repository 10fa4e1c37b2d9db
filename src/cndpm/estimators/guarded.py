"""Calls of an estimator that happen whole or not at all, one after the other.

:func:`changes` and :func:`answers` mark the methods of an estimator. What is promised, to the bit:

- a call that changes the model and raises, whatever it raises and wherever that came from, leaves the model as it was
  before the call; or, if everything was done when the exception came, as it is after it, which the exception tells;
- a call that answers sees the model between two batches, whatever other threads do to it; calls that change it wait for
  each other. Within one thread an answer in the middle of a batch (of `on_progress`, of a signal handler) is refused.

`fit` learns in a fresh estimator, whose attributes are taken over in one step. What changes a learner in place is a
:class:`~cndpm.estimators.journal.Step`, of which a :class:`~cndpm.estimators.journal.Journal` takes note.

Threads take turns in the order in which they came: Python's locks are not fair, and a thread that learns batch after
batch would take a lock again before one that waits has woken. An exception may arrive anywhere (Ctrl-C, a signal
handler that raises, another thread that asks for one), and a turn that was lost on the way would block a model for
good: leaving can be repeated, and does no harm where nothing was taken.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import torch
from numpy.linalg import LinAlgError as ArraysError
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from cndpm.errors import CNDPMError
from cndpm.estimators.journal import Journal, Step
from cndpm.model.cndpm import CNDPM

__all__ = ["NumericalError"]

P = ParamSpec("P")
R = TypeVar("R")
G = TypeVar("G", bound="Guarded")

_TRANSIENT = ("_lines", "_journal", "_is_stale")
"""Attributes that are no part of what is copied or written."""

SINGULAR = (LinAlgError, ArraysError)
"""Exceptions of numbers that cannot be computed with."""

_REFUSALS = (ValueError, TypeError, AttributeError)
"""Exceptions that come before anything was computed; others may leave half-made caches behind."""


class NumericalError(CNDPMError, ValueError):
    """Samples cannot be learned, or answered about, in the precision of the machine; the model is as it was before."""


class Turns:
    """A line of threads; the first in it has the turn.

    A process that was forked begins with an empty line: of all threads it has only the one that forked.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.process = os.getpid()
        self.holder: int | None = None
        # Appending to it, removing from it and looking at its end are single steps, so it needs no lock of its own,
        # which an exception could leave behind.
        self.line: deque[Turn] = deque()

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread has the turn."""
        return self.holder == threading.get_ident() and self.process == os.getpid()

    def run(self, function: Callable[[Turn], R]) -> R:
        """Returns what a function returns, called when the turn has come, with the turn."""
        if self.process != os.getpid():
            self._clear()
        turn = Turn(self)
        try:
            try:
                turn.wait()
                return function(turn)
            finally:
                turn.leave()
        finally:
            turn.leave()  # again, should an exception have arrived while leaving


class Turn:
    """One turn of one thread."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._called = threading.Lock()
        self._called.acquire()

    def wait(self) -> None:
        """Returns when this thread has the turn."""
        line = self._turns.line
        line.append(self)
        while line[0] is not self:
            self._called.acquire()
        self._turns.holder = threading.get_ident()

    def leave(self) -> None:
        """Gives the turn, or the place in the line, to the next one; may be repeated."""
        line = self._turns.line
        if self in line:  # has not left already
            if line[0] is self:
                self._turns.holder = None
            line.remove(self)
        # Also when nothing was removed: an exception may have arrived between removing and calling.
        try:  # `suppress` is Python code, in which one more exception may arrive
            if line:
                line[0]._called.release()
        except (IndexError, RuntimeError):
            pass  # nobody waits any longer, or has been called already

    def step_aside(self) -> None:
        """Lets all who wait by now have their turn first."""
        if len(self._turns.line) > 1:
            self.leave()
            self.wait()


class _Lines:
    """The lines of threads that want to change a model, and of those that want to read it between two batches."""

    def __init__(self) -> None:
        self.changing, self.answering = Turns(), Turns()


class Guarded:
    """Holds a learner such that every change of it can be undone; abstract. Changes of `learner_` are not guarded."""

    _learner: CNDPM
    _journal: Journal | None = None
    _is_stale: bool = False
    _restored_learner: Callable[[], CNDPM]
    """Makes a learner with the settings of the present one, which has learned nothing."""

    @property
    def learner_(self) -> CNDPM:
        """The learner, whole; AttributeError before anything was learned."""
        if "_learner" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} has no learner_ before fit or partial_fit")
        journal = self._journal
        if journal is not None and not journal.is_whole and not _lines(self).answering.is_mine:
            _between_batches(self, lambda: None)
        return self._learner

    # Changes

    def _apply(self, step: Step, **attributes: Any) -> Any:
        """Changes the learner in place; returns what the step does."""

        def run(turn: Turn) -> Any:
            journal = _read(self, self._current_journal)

            def between(_: int) -> None:
                journal.is_whole = True
                turn.step_aside()
                journal.is_whole = False

            began = time.perf_counter()
            journal.begin(step, dict(vars(self)))
            vars(self).update(attributes)
            result = step.run(self._learner, between)
            journal.commit(self._learner, time.perf_counter() - began)
            if journal.is_heavy:
                with suppress(MemoryError, RuntimeError):  # the samples are then kept a little longer
                    vars(self)["_journal"] = Journal(self._learner, journal.n_done)
            return result

        return (vars(self).get("_lines") or _lines(self)).answering.run(run)

    def _current_journal(self) -> Journal:
        """Returns the journal; a new one where there is none yet or the old one has become long."""
        journal = self._journal
        if journal is None or journal.is_due(self._learner):
            journal = vars(self)["_journal"] = Journal(self._learner, journal.n_done if journal else 0)
        return journal

    def _blank(self) -> Self:
        """Returns an estimator with the same parameters that has learned nothing."""
        blank = object.__new__(type(self))
        vars(blank).update(_without(vars(self), *_TRANSIENT, *self._learned))
        return blank

    @property
    def _learned(self) -> frozenset[str]:
        """Names of the attributes that learning has made; of a model that was loaded, all but the parameters."""
        names: frozenset[str] | None = vars(self).get("_learned_names")
        if names is None and "_learner" in vars(self):
            names = frozenset(vars(self)) - {*self._get_param_names(), *_TRANSIENT}  # type: ignore[attr-defined]
        return names or frozenset()

    def _adopt(self, fresh: Self) -> None:
        """Takes over everything that another estimator, made by :meth:`_blank`, has learned, in one step."""

        def adopt(_: Turn) -> None:
            kept = _without(vars(self), "_journal", "_is_stale", *self._learned)
            learned = _without(vars(fresh), *kept, *_TRANSIENT)
            names, n_adopted = frozenset({*learned, "_learned_names"}), vars(self).get("_n_adopted", 0) + 1
            self.__dict__ = {**kept, **learned, "_learned_names": names, "_n_adopted": n_adopted}

        _lines(self).answering.run(adopt)

    # Repair

    def _undo(self) -> None:
        """Undoes a step that was broken off, if there is one; by a thread that has the turn."""
        journal = self._journal
        if journal is None or (journal.is_whole and not journal.is_pending):
            return
        before = journal.before if journal.is_pending and journal.before is not None else vars(self)
        learner = self._restored_learner()
        journal.restore(learner)
        learner.on_progress = self._learner.on_progress
        names = (*_TRANSIENT, *self._get_param_names())  # type: ignore[attr-defined]
        now = {name: vars(self)[name] for name in names if name in vars(self)}
        self.__dict__ = {**before, **now, "_learner": learner, "_journal": journal.without_pending()}

    def _refresh(self) -> None:
        """Makes the learner anew of its state, without what answers had computed; by a thread that has the turn."""
        self._is_stale = True  # first of all, should one more exception arrive
        learner = self._restored_learner()
        learner.load_state_dict(self._learner.state_dict())
        learner.on_progress = self._learner.on_progress
        vars(self).update(_learner=learner, _is_stale=False)


def changes(method: Callable[Concatenate[G, P], R]) -> Callable[Concatenate[G, P], R]:
    """Marks a method that changes the model: all or nothing, and one at a time."""
    name = method.__name__

    @wraps(method)
    def whole(self: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
        turns = (vars(self).get("_lines") or _lines(self)).changing  # there before anything can go wrong
        if turns.is_mine:
            raise RuntimeError(f"{name} was called by the thread that is just changing this model")
        is_done = False

        def call(_: Turn) -> R:
            nonlocal is_done
            n_changes, with_gradients = _n_changes(self), torch.is_grad_enabled()
            journal = self._journal
            try:
                if self._is_stale or (journal is not None and (journal.is_pending or not journal.is_whole)):
                    _between_batches(self, self._undo)
                result = method(self, *args, **kwargs)
                is_done = True
                return result
            except BaseException as error:
                torch.set_grad_enabled(with_gradients)  # an exception that arrived as it was switched back on
                _undo_and_tell(self, error, name, n_changes)
                raise

        try:
            return turns.run(call)
        except BaseException as error:
            _tell(error, name, is_done=is_done)
            raise

    whole.is_guarded = True  # type: ignore[attr-defined]
    return whole


def answers(method: Callable[Concatenate[G, P], R]) -> Callable[Concatenate[G, P], R]:
    """Marks a method that asks the model: it sees the model between two batches."""

    @wraps(method)
    def whole(self: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return _between_batches(self, lambda: method(self, *args, **kwargs))
        except SINGULAR as error:
            raise numerical(method.__name__, error) from error

    whole.is_guarded = True  # type: ignore[attr-defined]
    return whole


def _between_batches(estimator: Guarded, function: Callable[[], R]) -> R:
    """Returns what a function returns that reads the model, in a turn of its own unless this thread has it."""
    turns = _lines(estimator).answering
    if not turns.is_mine:
        return turns.run(lambda _: _read(estimator, function))
    journal = estimator._journal
    if journal is not None and not journal.is_whole:
        raise RuntimeError("this model was asked by the thread that is just teaching it, in the middle of a batch")
    return function()


def _read(estimator: Guarded, function: Callable[[], R]) -> R:
    """Returns what a function returns that reads the model, which is put right first if a change was broken off."""
    journal = estimator._journal
    if journal is not None and not journal.is_whole:
        estimator._undo()
    if estimator._is_stale:
        estimator._refresh()
    try:
        return function()
    except _REFUSALS:
        raise
    except BaseException:
        if "_learner" in vars(estimator):
            estimator._refresh()
        raise


def _undo_and_tell(estimator: Guarded, error: BaseException, name: str, n_changes: tuple[int, int]) -> None:
    """Undoes what is not done, and has the exception say which it was."""
    journal = estimator._journal
    if journal is not None and journal.is_pending:
        journal.is_whole = False  # first of all, should one more exception arrive
        _between_batches(estimator, estimator._undo)
    if isinstance(error, SINGULAR):
        raise numerical(name, error) from error
    _tell(error, name, is_done=_n_changes(estimator) != n_changes)


def _tell(error: BaseException, name: str, *, is_done: bool) -> None:
    """Has an exception say whether the call was done; a refusal needs no words."""
    if any(note.startswith(f"{name} ") for note in getattr(error, "__notes__", ())):
        return
    if is_done:
        error.add_note(f"{name} was done when this arrived: the model has learned everything that it was given.")
    elif not isinstance(error, _REFUSALS):
        error.add_note(f"{name} has changed nothing: the model is as it was before the call.")


def numerical(name: str, error: Exception) -> NumericalError:
    """Returns what a call raises in place of an error of linear algebra."""
    return NumericalError(
        f"{name} met numbers that cannot be computed with ({error}). The model is as it was before. Bring the features "
        "to similar scales, for instance with sklearn.preprocessing.StandardScaler, or leave out extreme values."
    )


def persistent(attributes: dict[str, Any]) -> dict[str, Any]:
    """Returns the attributes that are copied and written: no locks, no journal."""
    return _without(attributes, *_TRANSIENT)


def _lines(estimator: Guarded) -> _Lines:
    lines: _Lines = vars(estimator).get("_lines") or vars(estimator).setdefault("_lines", _Lines())
    return lines


def _n_changes(estimator: Guarded) -> tuple[int, int]:
    """Tells whether a call has changed the model."""
    return vars(estimator).get("_n_adopted", 0), 0 if estimator._journal is None else estimator._journal.n_done


def _without(attributes: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if name not in names}
