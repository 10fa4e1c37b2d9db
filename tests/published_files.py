"""Writes small datasets in the published formats."""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np

N_TRAIN, N_TEST = 12, 4  # per class


def idx_bytes(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx_dataset(folder: Path, *, seed: int, prefixes=("train", "t10k"), n_classes=10, first_label=0, zipped=True):
    """Writes the four files; the image of sample i of class c begins with the bytes c and i."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for prefix, n in zip(prefixes, (N_TRAIN, N_TEST), strict=True):
        labels = np.tile(np.arange(n_classes, dtype=np.uint8), n) + first_label
        images = rng.integers(256, size=(len(labels), 28, 28), dtype=np.uint8)
        images[:, 0, 0], images[:, 0, 1] = labels, np.arange(len(labels)) // n_classes
        for name, array in ((f"{prefix}-images-idx3-ubyte", images), (f"{prefix}-labels-idx1-ubyte", labels)):
            content = idx_bytes(array)
            path = folder / (name + (".gz" if zipped else ""))
            path.write_bytes(gzip.compress(content) if zipped else content)


def cifar_arrays(n: int, n_classes: int, seed: int):
    labels = np.tile(np.arange(n_classes), n)
    images = np.random.default_rng(seed).integers(256, size=(len(labels), 3072), dtype=np.uint8)
    images[:, 0] = labels
    return images, labels


def write_cifar10(folder: Path) -> None:
    folder.mkdir()
    images, labels = cifar_arrays(N_TRAIN, 10, 0)
    for i in range(5):
        rows = slice(i * 24, (i + 1) * 24)
        batch = {b"data": images[rows], b"labels": labels[rows].tolist(), b"batch_label": b"training batch"}
        (folder / f"data_batch_{i + 1}").write_bytes(pickle.dumps(batch, protocol=2))
    images, labels = cifar_arrays(N_TEST, 10, 1)
    (folder / "test_batch").write_bytes(pickle.dumps({b"data": images, b"labels": labels.tolist()}, protocol=2))


def write_cifar100(folder: Path) -> None:
    folder.mkdir()
    for part, n in (("train", N_TRAIN), ("test", N_TEST)):
        images, labels = cifar_arrays(n, 100, n)
        content = {b"data": images, b"fine_labels": labels.tolist(), b"coarse_labels": (labels // 5).tolist()}
        (folder / part).write_bytes(pickle.dumps(content, protocol=2))
