"""The idx format of MNIST and its relatives, gzipped or not.

An idx file is a header (two zero bytes, a type code, the number of dimensions, then each dimension as a big-endian
32-bit integer) followed by the values. Images and labels of these datasets are unsigned bytes (type code 8).
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["DamagedFileError", "read_bytes", "read_idx", "read_idx_pair", "read_transposed_idx_pair"]

_UNSIGNED_BYTE = 8


class DamagedFileError(ValueError):
    """A dataset's file does not hold what its format promises; the message names the file and the reason."""


def read_bytes(path: Path) -> bytes:
    """The content of a file, decompressed if its name ends in ``.gz``."""
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedFileError(f"{path} is truncated or not a gzip file: {error}") from error


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Reads one idx file of unsigned bytes, of any number of dimensions."""
    content = read_bytes(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTE:
        raise DamagedFileError(f"{path} is not an idx file of unsigned bytes: it begins with {content[:4].hex()!r}")
    n_dimensions = content[3]
    start = 4 + 4 * n_dimensions
    if len(content) < start:
        raise DamagedFileError(f"{path} ends within its header of {start} bytes, after {len(content)}")
    shape = struct.unpack_from(f">{n_dimensions}I", content, 4)
    expected = start + int(np.prod(shape, dtype=np.int64))
    if len(content) != expected:
        raise DamagedFileError(f"{path} should hold {expected} bytes for shape {shape}; it holds {len(content)}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


def read_idx_pair(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads a file of images (n, H, W) and a file of labels (n,); returns (n, 1, H, W) and (n,)."""
    images, labels = (read_idx(path) for path in paths)
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise DamagedFileError(
            f"{paths[0]} and {paths[1]} should hold images (n, H, W) and labels (n,); "
            f"they hold {images.shape} and {labels.shape}"
        )
    return images[:, None], labels.astype(np.int64)


def read_transposed_idx_pair(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """As :func:`read_idx_pair`, for EMNIST, whose images are published with rows and columns exchanged."""
    images, labels = read_idx_pair(paths)
    return np.ascontiguousarray(images.transpose(0, 1, 3, 2)), labels
