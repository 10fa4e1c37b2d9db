"""Reading files that cannot be trusted: the errors of damaged files, and the limits that hold for all readers.

A reader checks what a file claims (counts, lengths, shapes) against the bytes that are there and against
:func:`memory_limit` before it sets memory aside; whatever goes wrong becomes a
:class:`DamagedFileError` (or, for pickles, a :class:`RefusedPickleError`).
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import BufferedIOBase
from pathlib import Path

from cndpm.errors import CNDPMError

__all__ = ["DamagedFileError", "RefusedPickleError"]

_PIECE = 1 << 20
_UNKNOWN_MEMORY = 8 << 30  # assumed where the system does not tell
_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


class DamagedFileError(CNDPMError, ValueError):
    """Reports a dataset's file that does not hold what its format promises.

    The message names the file, what was found, what is allowed and what to do.
    """


class MixedSizesError(DamagedFileError):
    """Reports a folder of images that differ in size where none was named to resize them to."""


class RefusedPickleError(CNDPMError, ValueError):
    """Reports a pickle that asks for more than arrays and plain containers, or that is damaged."""


@cache
def memory_limit() -> int:
    """Returns how many bytes one dataset's file may ask for: half of the machine's (or the container's) memory."""
    try:
        n_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        n_bytes = _UNKNOWN_MEMORY
    with suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        n_bytes = min(n_bytes, int(_CONTAINER_LIMIT.read_text()))
    return n_bytes // 2


def check_memory(path: Path, n_bytes: int) -> None:
    """Refuses a file (DamagedFileError) whose content would take more than :func:`memory_limit`."""
    if n_bytes > memory_limit():
        raise DamagedFileError(
            f"{path} claims to hold {n_bytes} bytes; at most {memory_limit()} are allowed, half of the memory here. "
            "If the file is what it should be, use fewer or smaller samples, or a machine with more memory."
        )


@contextmanager
def open_content(path: Path) -> Iterator[BufferedIOBase]:
    """Opens a file for reading, decompressed if its name ends in ``.gz``; its errors become `DamagedFileError`."""
    try:
        with gzip.GzipFile(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedFileError(f"{path} is truncated or not a gzip file: {error}. Get the file anew.") from error
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error}. Make it a file that may be read.") from error
    except MemoryError as error:
        raise DamagedFileError(f"{path} does not fit into memory. Use a machine with more of it.") from error


def read_bytes(path: Path) -> bytes:
    """Returns the content of a file, decompressed if its name ends in ``.gz``, or raises DamagedFileError."""
    with open_content(path) as file:
        check_memory(path, path.stat().st_size)
        content = read_at_most(file, memory_limit() + 1)
    check_memory(path, len(content))
    return content


def read_at_most(file: BufferedIOBase, n: int) -> bytes:
    """Reads up to `n` bytes, piece by piece: a plain ``read(n)`` would set `n` bytes aside before it has seen one."""
    pieces = []
    while n > 0 and (piece := file.read(min(n, _PIECE))):
        pieces.append(piece)
        n -= len(piece)
    return b"".join(pieces)
