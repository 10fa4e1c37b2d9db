"""Reads the checkpoint of a run, once it is known to be of that run.

A checkpoint says which configuration it was made with, and which log had led to it. A whole file of another run, or one
that lies beside another log, is refused like a damaged one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cndpm.experiments.config import completed, differing_keys
from cndpm.experiments.log_file import digest_of
from cndpm.experiments.record import CHECKPOINT, LOG, read_head
from cndpm.state import State, StateError, StateFile, read_state

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
    if differing := differing_keys(_completed(path, file.settings["config"]), completed(config)):
        raise StateError(f"{path} is of another run; it differs in {', '.join(differing)}")
    log, n_bytes = path.with_name(LOG), file.settings["log_bytes"]
    if digest_of(log, n_bytes) != file.settings["log_sha256"]:
        raise StateError(f"{log} is damaged: its first {n_bytes} bytes are not those that led to {path}")
    return file


def _completed(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Fills settings that have come since in a configuration that somebody may have made up."""
    try:
        return completed(config)
    except Exception as error:
        raise StateError(f"{path} does not say of which run it is: {type(error).__name__}: {error}") from error
