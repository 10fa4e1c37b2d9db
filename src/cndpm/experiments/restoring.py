"""Gives a learner the state that a checkpoint holds, or says why the two do not fit."""

from __future__ import annotations

from pathlib import Path

from cndpm.learner import Learner
from cndpm.state import State, StateError, expect, flag, number, whole

__all__ = ["check_progress", "restore_learner"]


def restore_learner(learner: Learner, state: State, source: str | Path) -> None:
    """Restores a learner.

    Args:
        learner: Made as the one that the state is of.
        state: Of a learner.
        source: Where it comes from, for the message.

    Raises:
        StateError: The state does not fit; the learner cannot be used then.

    Example:
        >>> from cndpm.baselines.slda import SLDA
        >>> learner = SLDA(SLDA.Settings(), input_shape=(2,), n_classes=3)
        >>> restore_learner(learner, learner.state_dict(), "a copy")
    """
    try:
        learner.load_state_dict(state)
    except Exception as error:
        raise StateError(
            f"{source} does not hold the state of this {type(learner).__name__}: {type(error).__name__}: "
            f"{str(error)[:300]}"
        ) from error


def check_progress(checkpoint: State, source: str | Path) -> None:
    """Checks what a checkpoint says of the run.

    Args:
        checkpoint: As it was loaded.
        source: Where it comes from, for the message.

    Raises:
        StateError: Something is missing, or cannot be.
    """
    forms = {"step": whole(), "finished": flag(), "seconds": number(0), "paused_seconds": number(0)}
    try:
        expect(checkpoint, {"learner": lambda *_: None, **forms})
    except StateError as error:
        raise StateError(f"{source} is no checkpoint of a run: {error}") from None
