"""Plain arrays from ``.npz`` files: zip archives of ``.npy`` files.

numpy sets aside whatever memory a header claims; here numpy reads the header alone, and the claim is compared with the
bytes that are there. Zip archives carry a checksum of each file.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection, Sequence
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import cast

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from cndpm.datasets.files import DamagedFileError, check_memory, open_content, read_at_most

Arrays = dict[str, NDArray[np.generic]]

_HEADERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
_MOST_DIMENSIONS = 8


class _NpzError(Exception):
    """Says what is wrong, without the file's name."""


def read_npz(path: Path, choices: Sequence[Collection[str]]) -> Arrays:
    """Reads the arrays of the first choice whose names are all in the file: booleans, numbers or text, never objects.

    DamagedFileError is raised where no choice is complete, or the file is damaged or holds something else.
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
    file = BytesIO(content)
    if content[:6] != b"\x93NUMPY" or tuple(content[6:8]) not in _HEADERS:
        raise _NpzError(f"{name} is not an array in .npy format 1 or 2")
    try:
        shape, is_fortran, dtype = _HEADERS[npy_format.read_magic(file)](file)
    except Exception as error:  # headers are evaluated as literals, which fail in many ways
        raise _NpzError(f"{name} is not a plain array of booleans, numbers or text: {str(error)[:80]}") from error
    if dtype.kind not in "biufUS" or not dtype.itemsize or min(shape, default=0) < 0:
        raise _NpzError(f"{name} is not a plain array of booleans, numbers or text: {shape} of {dtype}")
    start = file.tell()
    if len(shape) > _MOST_DIMENSIONS or math.prod(shape) * dtype.itemsize != len(content) - start:
        raise _NpzError(f"{name} has {len(content) - start} bytes of values, not those of {shape} {dtype}")
    return np.frombuffer(content, dtype, offset=start).reshape(shape, order="F" if is_fortran else "C")
