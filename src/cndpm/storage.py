"""Writes files so that neither a crash nor a loss of power leaves half of one: the only module that writes state.

A file is replaced by writing another beside it, bringing that to the disk (fsync), and renaming it; then the folder is
brought to the disk too, since the name is in it. All calls to the system go through this module's `os`, so that an
attack can record them and play them back up to any moment.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

Piece = bytes | memoryview


def replace_file(path: Path, pieces: Iterable[Piece], *, keep: Path | None = None) -> None:
    """Writes a file, whole or not at all; it is on the disk when this returns.

    Raises:
        OSError: The folder cannot be written, or the disk is full.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        try:
            for piece in pieces:
                _write(file, piece)
            os.fsync(file)
        finally:
            os.close(file)
        if keep is not None and path.exists():
            os.replace(path, keep)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(path.parent)


def move_file(source: Path, target: Path) -> None:
    """Renames a file within its folder; what had the other name is replaced."""
    os.replace(source, target)
    _sync_folder(target.parent)


def remove_file(path: Path) -> None:
    """Removes a file, where there is one."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    _sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Creates a folder, and those above it, where they are missing."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(each)
        _sync_folder(each.parent)
    if not folder.is_dir():
        raise NotADirectoryError(20, "a file has that name", str(folder))


def clear_leftovers(path: Path) -> None:
    """Removes what a crash left of replacing a file; the whole one that it was to replace is still there."""
    for leftover in path.parent.glob(f".{path.name}.*"):
        with suppress(FileNotFoundError):
            os.unlink(leftover)


class Appended:
    """A file that is only appended to, created where it is missing; `size` is its length in bytes."""

    def __init__(self, path: Path) -> None:
        is_new = not path.exists()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags, 0o666)
        self.size = path.stat().st_size
        if is_new:
            os.fsync(self._file)
            _sync_folder(path.parent)

    def write(self, content: bytes) -> None:
        """Appends bytes, for readers to see at once."""
        _write(self._file, content)
        self.size += len(content)

    def sync(self) -> None:
        """Brings what was written to the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Releases the file."""
        os.close(self._file)


def _write(file: int, piece: Piece) -> None:
    rest = memoryview(piece)
    while len(rest):
        rest = rest[os.write(file, rest) :]


def _sync_folder(folder: Path) -> None:
    """Brings the names in a folder to the disk, where the system can: some have no way to ask for it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
