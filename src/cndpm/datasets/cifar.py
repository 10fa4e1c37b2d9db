"""CIFAR10 and CIFAR100 as published in their "python version": pickled batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.datasets.files import DamagedFileError
from cndpm.datasets.pickles import read_pickle

_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32
_MOST_LABEL = 1 << 31


def read_cifar(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads pickled batches one after the other; returns images (n, 3, 32, 32) and (fine) labels (n,)."""
    parts = [_read_batch(path) for path in paths]
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def _read_batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    batch = read_pickle(path)
    held = batch if isinstance(batch, dict) else {}
    data, labels = held.get(b"data"), held.get(b"fine_labels", held.get(b"labels"))
    if labels is None or not _is_labels(labels) or not isinstance(data, np.ndarray) or data.dtype != np.uint8:
        raise _unlike(path, f"it has {sorted(map(str, held))} of other types" if held else "it has none of them")
    if len(labels) == 0 or data.shape != (len(labels), _PIXELS):
        raise _unlike(path, f"they are {data.shape} and ({len(labels)},)")
    return data.reshape(-1, *_SHAPE), np.array(labels, np.int64)


def _is_labels(labels: Any) -> bool:
    """Tells whether `labels` is a flat list of class numbers, without following what else it may hold."""
    return isinstance(labels, list) and all(type(label) is int and 0 <= label < _MOST_LABEL for label in labels)


def _unlike(path: Path, found: str) -> DamagedFileError:
    return DamagedFileError(
        f"{path} should hold 'data' (n, {_PIXELS}) of bytes and a list 'labels' or 'fine_labels' (n,); {found}. "
        "Get the file anew."
    )
