"""Has threads take turns, in the order in which they came.

A model is asked by many threads while one teaches it. Python's locks are not fair: a thread that learns batch after
batch would take the lock again before one that waits has woken. Here who waits is next.

An exception may arrive anywhere: Ctrl-C, a signal handler that raises, another thread that asks for one. A turn that
was lost on the way would block a model for good, so leaving can be repeated and does no harm where nothing was taken.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")


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
    def first(self) -> Turn | None:
        """The turn that is taken, or is about to be; None where nobody waits."""
        try:
            return self.line[0]
        except IndexError:
            return None

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
        turns, line = self._turns, self._turns.line
        line.append(self)
        while line[0] is not self:
            self._called.acquire()
        turns.holder = threading.get_ident()

    def leave(self) -> None:
        """Gives the turn, or the place in the line, to the next one; may be repeated."""
        turns = self._turns
        if turns.first is self:
            turns.holder = None
        if self in turns.line:
            turns.line.remove(self)
        # Also when nothing was removed: an exception may have arrived between removing and calling.
        if (first := turns.first) is not None:
            try:  # noqa: SIM105 - `suppress` is Python code, in which one more exception may arrive
                first._called.release()
            except RuntimeError:
                pass  # has been called already

    def step_aside(self) -> None:
        """Lets all who wait by now have their turn first."""
        if len(self._turns.line) > 1:
            self.leave()
            self.wait()
