"""Gives a learner the state that a checkpoint holds, or says why the two do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from cndpm.learner import Learner
from cndpm.state import State, StateError, expect, flag, number, whole


def restore_learner(learner: Learner, state: State, source: str | Path) -> None:
    """Restores a learner; StateError where the state does not fit, and then the learner cannot be used."""
    try:
        learner.load_state_dict(state)
        _rehearse(learner)
    except Exception as error:
        raise StateError(
            f"{source} does not hold the state of this {type(learner).__name__}: {type(error).__name__}: "
            f"{str(error)[:300]}"
        ) from error


def _rehearse(learner: Learner) -> None:
    """Asks the experts of a mixture once, for a sample of zeros: parts that do not fit each other show here."""
    experts = learner.experts
    if experts is None or not learner.footprint().n_experts:
        return
    x, is_told = torch.zeros(1, *learner.input_shape), getattr(learner.settings, "target", "classes") == "classes"
    with np.errstate(all="ignore"):  # what is not a number is told below
        answers = [experts.expert_log_proba(x), *([experts.expert_predict_log_proba(x)] if is_told else [])]
    if any(answer.isnan().any() for answer in answers):
        raise StateError("its answers are not numbers")


def check_progress(checkpoint: State, source: str | Path) -> None:
    """Refuses (StateError) a checkpoint in which something about the run is missing, or cannot be."""
    forms = {"step": whole(), "finished": flag(), "seconds": number(0), "paused_seconds": number(0)}
    try:
        expect(checkpoint, {"learner": lambda *_: None, **forms})
    except StateError as error:
        raise StateError(f"{source} is no checkpoint of a run: {error}") from None
