"""Plain arrays from ``.npz`` files: zip archives of ``.npy`` files.

An ``.npy`` file is a magic string, a version, the length of a header, the header (a Python dictionary in text: type,
order and shape) and the values. numpy evaluates the header and sets aside whatever memory it claims; here three
patterns read it, and the claim is compared with the bytes that are there. Zip archives carry a checksum of each file.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Collection, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from cndpm.datasets.files import DamagedFileError, check_memory, open_content, read_at_most

__all__ = ["read_npz"]

Arrays = dict[str, NDArray[np.generic]]

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {1: 2, 2: 4}  # of the header's length, by version
_MOST_DIMENSIONS = 8
_TYPE = re.compile(r"'descr'\s*:\s*'([<>|=]?[biufUS][1-9]\d{0,8})'")
_ORDER = re.compile(r"'fortran_order'\s*:\s*(True|False)")
_SHAPE = re.compile(r"'shape'\s*:\s*\(((?:\d{1,18}\s*,?\s*)*)\)")


class _NpzError(Exception):
    """Says what is wrong, without the file's name."""


def read_npz(path: Path, choices: Sequence[Collection[str]]) -> Arrays:
    """Reads the arrays of the first choice whose names are all in the file.

    Args:
        path: An ``.npz`` file.
        choices: Names of arrays that belong together, such as ``("x", "y")``.

    Returns:
        Each array of that choice by its name; booleans, numbers or text, never objects.

    Raises:
        DamagedFileError: No choice is complete, or the file is damaged or holds something else.
    """
    try:
        with open_content(path) as file, zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            wanted = next((choice for choice in choices if set(choice) <= members.keys()), None)
            if wanted is None:
                raise _NpzError(f"it has the arrays {sorted(members)[:20]}")
            check_memory(path, sum(members[name].file_size for name in wanted))
            return {name: _parse(_content(archive, members[name]), name) for name in wanted}
    except DamagedFileError:
        raise
    except Exception as error:  # zipfile raises many kinds for a damaged archive
        names = " or ".join(", ".join(choice) for choice in choices)
        raise DamagedFileError(
            f"{path} should be an .npz file of plain arrays named {names}: {error}. Write it with numpy.savez."
        ) from error


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Returns a member's bytes; zipfile gives out no more than were claimed, and compares the checksum at the end."""
    with cast(BufferedIOBase, archive.open(member)) as file:
        return read_at_most(file, member.file_size + 1)


def _parse(content: bytes, name: str) -> NDArray[np.generic]:
    """Reads one array in the ``.npy`` format."""
    n = _LENGTH_BYTES.get(content[6], 0) if len(content) > 10 else 0
    if content[:6] != _MAGIC or not n:
        raise _NpzError(f"{name} is not an array in .npy format 1 or 2")
    start = 8 + n + int.from_bytes(content[8 : 8 + n], "little")
    header = content[8 + n : start].decode("latin1")
    kind, order, sizes = (pattern.search(header) for pattern in (_TYPE, _ORDER, _SHAPE))
    if kind is None or order is None or sizes is None:
        raise _NpzError(f"{name} is not a plain array of booleans, numbers or text: its header is {header[:80]!r}")
    dtype = np.dtype(kind[1])
    shape = tuple(int(size) for size in sizes[1].split(",") if size.strip())
    if len(shape) > _MOST_DIMENSIONS or math.prod(shape) * dtype.itemsize != len(content) - start:
        raise _NpzError(f"{name} has {max(0, len(content) - start)} bytes of values, not those of {shape} {dtype}")
    return np.frombuffer(content, dtype, offset=start).reshape(shape, order="F" if order[1] == "True" else "C")
