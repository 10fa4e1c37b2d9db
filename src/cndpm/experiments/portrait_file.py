"""Saves and loads the portrait that a mixture leaves at the end of its run.

It lies in ``portrait.npz`` beside the record: samples drawn from the mixture and from every expert, and the experts'
similarity, so that the mixture can be looked at later without data or learner.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from cndpm.datasets import DamagedFileError
from cndpm.datasets.npz import read_npz
from cndpm.experiments.sealed_json import RecordError
from cndpm.learner import Portrait
from cndpm.storage import replace_file

PORTRAIT = "portrait.npz"
"""The file of a record that holds the portrait of a mixture."""


def save_portrait(folder: Path, portrait: Portrait) -> None:
    """Writes ``portrait.npz``, whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, **vars(portrait))
    try:
        replace_file(folder / PORTRAIT, [content.getvalue()])
    except OSError as error:
        raise RecordError(f"cannot write {folder / PORTRAIT}: {error.strerror or error}") from error


def load_portrait(folder: str | Path) -> Portrait | None:
    """Reads the portrait in a record; None where the run left none, RecordError where the file is damaged."""
    path = Path(folder) / PORTRAIT
    if not path.is_file():
        return None
    try:
        arrays = read_npz(path, [tuple(Portrait.__dataclass_fields__)])
    except DamagedFileError as error:
        raise RecordError(f"{path} is damaged: {error}") from error
    shapes = {name: array.shape for name, array in arrays.items()}
    n, k = shapes["x"][:1], shapes["counts"]
    per_sample = all(shapes[name] == n for name in ("y", "expert", "from_mixture"))
    if not (n and per_sample and len(k) == 1 and shapes["similarity"] == k * 2):
        raise RecordError(f"{path} is damaged: its arrays do not belong together, they have the shapes {shapes}")
    return Portrait(**arrays)  # type: ignore[arg-type]
