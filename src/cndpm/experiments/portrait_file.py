"""Saves and loads the portrait that a mixture leaves at the end of its run.

It lies in ``portrait.npz`` beside the record: samples drawn from the mixture and from every expert, and the experts'
similarity, so that the mixture can be looked at later without data or learner.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from cndpm.experiments.record import RecordError
from cndpm.learner import Portrait

__all__ = ["PORTRAIT", "Portrait", "load_portrait", "save_portrait"]

PORTRAIT = "portrait.npz"
"""The file of a record that holds the portrait of a mixture."""


def save_portrait(folder: Path, portrait: Portrait) -> None:
    """Writes ``portrait.npz``, whole or not at all.

    Args:
        folder: Of the record.
        portrait: Is written.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{PORTRAIT}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **vars(portrait))
        Path(temporary).chmod(0o644)
        Path(temporary).replace(folder / PORTRAIT)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise RecordError(f"cannot write {folder / PORTRAIT}: {error.strerror or error}") from error


def load_portrait(folder: str | Path) -> Portrait | None:
    """Reads the portrait in a record; None where the run left none.

    Raises:
        RecordError: The file is damaged.
    """
    path = Path(folder) / PORTRAIT
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return Portrait(**{name: arrays[name] for name in Portrait.__dataclass_fields__})
    except (BadZipFile, EOFError, KeyError, OSError, ValueError) as error:
        raise RecordError(f"{path} is damaged: {error}") from error
