"""Reads the checkpoint of a run, once it is known to be of that run, and gives a learner the state that it holds.

A checkpoint says which configuration it was made with, and which log had led to it. A whole file of another run, or one
that lies beside another log, is refused like a damaged one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from cndpm.experiments.config import differing_keys
from cndpm.experiments.record import CHECKPOINT, LOG, read_head
from cndpm.experiments.record_files import digest_of
from cndpm.learner import Learner
from cndpm.state import State, StateError, StateFile, expect, flag, number, read_state, whole

__all__ = ["read_checkpoint"]


def read_checkpoint(folder: str | Path) -> State:
    """Reads the last checkpoint in the record of a run, complete or not; its ``learner`` is the state of the learner.

    Raises:
        RecordError: There is no record, or its configuration is damaged.
        MissingStateError: There is no checkpoint.
        StateError: The checkpoint is damaged, of another run, or not the one that the log led to.
    """
    folder = Path(folder)
    return read_checkpoint_of(folder / CHECKPOINT, read_head(folder)["config"]).state


def read_checkpoint_of(path: Path, config: dict[str, Any]) -> StateFile:
    """Reads a checkpoint; StateError unless it is of the given run and lies beside the log that led to it."""
    file = read_state(path, kind="checkpoint")
    told = {"config": dict, "log_bytes": int, "log_sha256": str}
    if not all(isinstance(file.settings.get(name), kind) for name, kind in told.items()):
        raise StateError(f"{path} does not say of which run it is")
    if differing := differing_keys(file.settings["config"], config):
        raise StateError(f"{path} is of another run; it differs in {', '.join(differing)}")
    log, n_bytes = path.with_name(LOG), file.settings["log_bytes"]
    if digest_of(log, n_bytes) != file.settings["log_sha256"]:
        raise StateError(f"{log} is damaged: its first {n_bytes} bytes are not those that led to {path}")
    return file


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
