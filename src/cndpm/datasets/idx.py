"""The idx format of MNIST and its relatives, gzipped or not.

An idx file is a header (two zero bytes, a type code, the number of dimensions, then each dimension as a big-endian
32-bit integer) followed by the values. Images and labels of these datasets are unsigned bytes (type code 8).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from io import BufferedIOBase
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cndpm.datasets.files import DamagedFileError, check_memory, open_content, read_at_most

_UNSIGNED_BYTE = 8
_MOST_DIMENSIONS = 4


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Reads one idx file of unsigned bytes with one to four dimensions, none of them zero; else DamagedFileError."""
    with open_content(path) as file:
        shape = _read_header(file, path)
        expected = math.prod(shape)
        check_memory(path, expected)
        content = read_at_most(file, expected + 1)  # one more: a gzip file's checksum lies at its end
    if len(content) != expected:
        found = "more" if len(content) > expected else str(len(content))
        raise DamagedFileError(
            f"{path} should hold {expected} bytes after its header, for shape {shape}; it holds {found}. "
            "Get the file anew."
        )
    return np.frombuffer(content, np.uint8).reshape(shape).copy()


def _read_header(file: BufferedIOBase, path: Path) -> tuple[int, ...]:
    head = file.read(4)
    if len(head) < 4 or head[:3] != bytes([0, 0, _UNSIGNED_BYTE]):
        raise DamagedFileError(
            f"{path} is not an idx file of unsigned bytes: it begins with {head.hex()!r}, not with '000008'. "
            "Get the file anew; where it is gzipped, its name must end in .gz."
        )
    n_dimensions = head[3]
    sizes = file.read(4 * n_dimensions)
    if not 1 <= n_dimensions <= _MOST_DIMENSIONS or len(sizes) < 4 * n_dimensions:
        raise DamagedFileError(
            f"{path} should have 1 to {_MOST_DIMENSIONS} dimensions of 4 bytes each in its header; "
            f"it names {n_dimensions} and holds {len(sizes)} bytes for them. Get the file anew."
        )
    shape = struct.unpack(f">{n_dimensions}I", sizes)
    if 0 in shape:
        raise DamagedFileError(f"{path} holds no samples: its shape is {shape}. Get the file anew.")
    return shape


def read_idx_pair(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads a file of images (n, H, W) and a file of labels (n,); returns (n, 1, H, W) and (n,)."""
    images, labels = (read_idx(path) for path in paths)
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise DamagedFileError(
            f"{paths[0]} and {paths[1]} should hold images (n, H, W) and labels (n,); "
            f"they hold {images.shape} and {labels.shape}. Get both files from one place."
        )
    return images[:, None], labels.astype(np.int64)


def read_transposed_idx_pair(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads a pair as :func:`read_idx_pair` does, for EMNIST, whose images have rows and columns exchanged."""
    images, labels = read_idx_pair(paths)
    return np.ascontiguousarray(images.transpose(0, 1, 3, 2)), labels
