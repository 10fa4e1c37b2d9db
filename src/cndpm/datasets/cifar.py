"""CIFAR10 and CIFAR100 as published: pickled batches ("python version") and fixed-size records ("binary version")."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cndpm.datasets.idx import DamagedFileError
from cndpm.datasets.pickles import read_pickle

__all__ = ["read_cifar10_binary", "read_cifar100_binary", "read_cifar_python"]

_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32


def read_cifar_python(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads pickled batches one after the other; returns images (n, 3, 32, 32) and (fine) labels (n,)."""
    parts = [_read_python_batch(path) for path in paths]
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def _read_python_batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    batch = read_pickle(path)
    try:
        data = np.asarray(batch[b"data"], np.uint8)
        labels = np.asarray(batch[b"fine_labels" if b"fine_labels" in batch else b"labels"], np.int64)
        return data.reshape(len(labels), *_SHAPE), labels
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(
            f"{path} should hold 'data' (n, {_PIXELS}) and 'labels' or 'fine_labels' (n,): {error}"
        ) from error


def read_cifar10_binary(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads records of one label byte and 3,072 pixels; returns images (n, 3, 32, 32) and labels (n,)."""
    return _read_records(paths, n_labels=1)


def read_cifar100_binary(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads records of a coarse label, a fine label and 3,072 pixels; returns images and fine labels."""
    return _read_records(paths, n_labels=2)


def _read_records(paths: Sequence[Path], *, n_labels: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    records = []
    for path in paths:
        content = np.fromfile(path, np.uint8)
        if content.size == 0 or content.size % (n_labels + _PIXELS):
            raise DamagedFileError(
                f"{path} should hold records of {n_labels + _PIXELS} bytes; its {content.size} bytes are no multiple"
            )
        records.append(content.reshape(-1, n_labels + _PIXELS))
    table = np.concatenate(records)
    return table[:, n_labels:].reshape(-1, *_SHAPE), table[:, n_labels - 1].astype(np.int64)
