"""SVHN's arrays from MATLAB's version 5 files (``save -v7`` and before).

A file is a header of 128 bytes and then elements. An element is a tag, which holds a type and a number of bytes, and
its data, padded to a multiple of eight bytes; data of up to four bytes lie within the tag. An array is an element of
type matrix, perhaps deflated, whose data are four elements: flags, dimensions, name and values (column by column).

scipy reads these files with compiled code that trusts what they claim; damaged ones have made it write beyond its
memory and end the process. This reader handles numeric arrays alone, checks every length before it is used, and
compares the checksum that deflated elements end with.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cndpm.datasets.files import DamagedFileError, memory_limit, read_bytes

_HEADER = 128
_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15
_VALUES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_NUMERIC_CLASSES = range(6, 16)
_COMPLEX = 0x0800
_MOST_DIMENSIONS = 8


class _DamageError(Exception):
    """Says what is wrong, without the file's name."""


class _Element(NamedTuple):
    kind: int
    data: memoryview


def read_matlab(path: Path, names: Collection[str]) -> dict[str, NDArray[np.generic]]:
    """Reads the numeric arrays of some names that a file has, of two dimensions or more, with the type of their values.

    DamagedFileError is raised where the file is of another format, truncated, or claims more than it holds.
    """
    content = memoryview(read_bytes(path))
    try:
        if bytes(content[_HEADER - 4 : _HEADER]) != b"\x00\x01IM":
            raise _DamageError("its header should end with 00 01 'IM' (the other byte order is not read, 7.3 is HDF5)")
        found = (_array(matrix, names) for matrix in _matrices(content[_HEADER:]))
        return dict(named for named in found if named is not None)
    except (_DamageError, zlib.error) as error:
        raise DamagedFileError(f"{path} is not a readable MATLAB 5 file: {error}. Get the file anew.") from error
    except MemoryError as error:
        raise DamagedFileError(f"{path} does not fit into memory. Use a machine with more of it.") from error


def _matrices(block: memoryview) -> Iterator[memoryview]:
    """Yields the data of every matrix, inflated; all that is inflated counts against one limit."""
    left = memory_limit()
    for element in _elements(block):
        if element.kind == _COMPRESSED:
            data = _inflate(element.data, left)
            left -= len(data)
            yield data
        elif element.kind == _MATRIX:
            yield element.data
        else:
            raise _DamageError(f"an element is of type {element.kind}; only matrices may stand at the top")


def _elements(block: memoryview) -> Iterator[_Element]:
    at = 0
    while at < len(block):
        if len(block) - at < 8:
            raise _DamageError(f"{len(block) - at} bytes are left where a tag of 8 should be")
        kind, size = struct.unpack_from("<II", block, at)
        start, room = at + 8, len(block) - at - 8
        if kind >> 16:  # a small element: its size is in the upper half of the type, its data are in the tag
            kind, size, start, room = kind & 0xFFFF, kind >> 16, at + 4, 4
        if size > room:
            raise _DamageError(f"an element claims {size} bytes where {room} are left")
        yield _Element(kind, block[start : start + size])
        padding = 0 if kind == _COMPRESSED else -size % 8
        at = start + (4 if start == at + 4 else size + padding)


def _inflate(data: memoryview, limit: int) -> memoryview:
    """Inflates the one matrix that a deflated element holds, and not a byte more than its tag claims."""
    inflater = zlib.decompressobj()
    tag = inflater.decompress(data, 8)
    if len(tag) < 8:
        raise _DamageError("a deflated element ends within its tag")
    kind, size = struct.unpack("<II", tag)
    if kind != _MATRIX or size > limit:
        raise _DamageError(f"a deflated element should be a matrix of at most {limit} bytes; type {kind}, {size} bytes")
    matrix = inflater.decompress(inflater.unconsumed_tail, size + 1)
    if len(matrix) != size or not inflater.eof:
        raise _DamageError(f"a deflated matrix claims {size} bytes; it holds {'other than that' if matrix else 'none'}")
    return memoryview(matrix)


def _array(matrix: memoryview, names: Collection[str]) -> tuple[str, NDArray[np.generic]] | None:
    """Returns name and array of a matrix; None if it is not one of `names`."""
    parts = _elements(matrix)
    flags, dimensions, label = (next(parts, None) for _ in range(3))
    if flags is None or flags.kind != _UINT32 or len(flags.data) != 8:
        raise _DamageError("a matrix does not begin with its flags")
    if label is None or label.kind != _INT8 or dimensions is None:
        return None  # objects and functions are built otherwise
    name = bytes(label.data).decode("latin-1")
    if name not in names:
        return None
    word = struct.unpack("<I", flags.data[:4])[0]
    if word & 0xFF not in _NUMERIC_CLASSES or word & _COMPLEX:
        raise _DamageError(f"{name} is not an array of real numbers (flags {word:#x})")
    shape = _shape(name, dimensions)
    values = next(parts, None)
    if values is None or values.kind not in _VALUES or next(parts, None) is not None:
        raise _DamageError(f"{name} should end with one element of numbers")
    stored = np.dtype("<" + _VALUES[values.kind])
    if math.prod(shape) * stored.itemsize != len(values.data):
        raise _DamageError(f"{name} has {len(values.data)} bytes of values; its shape {shape} asks for {stored} each")
    return name, np.frombuffer(values.data, stored).reshape(shape, order="F")


def _shape(name: str, dimensions: _Element) -> tuple[int, ...]:
    n = len(dimensions.data) // 4
    if dimensions.kind != _INT32 or len(dimensions.data) % 4 or not 2 <= n <= _MOST_DIMENSIONS:
        raise _DamageError(f"{name} should have 2 to {_MOST_DIMENSIONS} dimensions of 4 bytes each")
    shape: tuple[int, ...] = struct.unpack(f"<{n}i", dimensions.data)
    if min(shape) < 1:
        raise _DamageError(f"{name} is empty or has a negative dimension: {shape}")
    return shape


def read_svhn(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads ``X`` (H, W, 3, n) and ``y`` (n, 1) from one file; returns images (n, 3, H, W) and labels (n,).

    The digit zero is published as label 10; it becomes 0, as in MNIST.
    """
    (path,) = paths
    content = read_matlab(path, ("X", "y"))
    if content.keys() != {"X", "y"}:
        raise DamagedFileError(f"{path} should hold X and y; of these it has {sorted(content)}. Get the file anew.")
    images, labels = content["X"], content["y"]
    if images.ndim != 4 or images.shape[2] != 3 or images.dtype != np.uint8 or labels.shape != (images.shape[3], 1):
        raise DamagedFileError(
            f"{path} should hold X (H, W, 3, n) of bytes and y (n, 1); "
            f"it holds X {images.shape} of {images.dtype} and y {labels.shape}. Get the file anew."
        )
    digits = labels.ravel()
    if not np.isin(digits, np.arange(1, 11)).all():  # also before % 10 would make digits of 11 or 2.5
        raise DamagedFileError(f"{path} should have labels 1 to 10 alone, 10 for the digit zero. Get the file anew.")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)).astype(np.uint8), digits.astype(np.int64) % 10
