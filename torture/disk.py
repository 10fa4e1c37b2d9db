"""A disk that forgets: records what the package asks of the file system, and shows what a loss of power would leave.

The package writes through one module, `cndpm.storage`. Its `os` is replaced by :class:`RecordedOS`, which does what it
is asked and takes notes. :func:`survivors` plays the notes back up to any moment. POSIX promises that what was written
before an fsync of the file is on the disk, and that names are once their folder was synced; nothing else:

- content that was not synced may be there, lost, or there in part;
- names that were created, renamed or removed since the folder was synced may have changed on the disk, or not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from cndpm import storage

__all__ = ["FATES", "Operation", "RecordedOS", "recording", "survivors"]

Fate = Literal["kept", "lost", "names kept", "content kept", "chance"]
FATES: tuple[Fate, ...] = ("kept", "lost", "names kept", "content kept", "chance")
"""Of what was not synced: all stays (the process was killed), all is gone, or only names or contents stay, or some."""

Operation = tuple[Any, ...]


class RecordedOS:
    """Stands in for the module `os` and notes everything that changes files.

    Attributes:
        operations: What was done, in order.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._files: dict[int, int] = {}
        self._folders: dict[int, Path] = {}
        self._inodes: dict[Path, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        """Opens a file, or a folder to be synced."""
        is_new = not Path(path).exists()
        handle = os.open(path, flags, mode)
        if Path(path).is_dir():
            self._folders[handle] = Path(path)
            return handle
        if is_new:
            self._inodes[Path(path)] = len(self.operations) + 1
            self.operations.append(("create", Path(path), self._inodes[Path(path)]))
        self._files[handle] = self._inodes[Path(path)]
        return handle

    def write(self, handle: int, content: Any) -> int:
        """Appends to a file."""
        n = os.write(handle, content)
        self.operations.append(("write", self._files[handle], bytes(content[:n])))
        return n

    def fsync(self, handle: int) -> None:
        """Syncs a file or a folder; not really, since nothing is lost here."""
        if handle in self._folders:
            self.operations.append(("sync folder", self._folders[handle]))
        else:
            self.operations.append(("sync", self._files[handle]))

    def close(self, handle: int) -> None:
        """Closes a file or a folder."""
        os.close(handle)
        self._files.pop(handle, None)
        self._folders.pop(handle, None)

    def replace(self, source: Path, target: Path) -> None:
        """Renames a file."""
        os.replace(source, target)
        self._inodes[Path(target)] = self._inodes.pop(Path(source))
        self.operations.append(("rename", Path(source), Path(target)))

    def unlink(self, path: Path) -> None:
        """Removes a file."""
        os.unlink(path)
        self._inodes.pop(Path(path), None)
        self.operations.append(("unlink", Path(path)))

    def mkdir(self, path: Path) -> None:
        """Creates a folder."""
        os.mkdir(path)
        self.operations.append(("mkdir", Path(path)))


@contextmanager
def recording() -> Iterator[RecordedOS]:
    """Records what the package does to files."""
    recorded, before = RecordedOS(), vars(storage)["os"]
    vars(storage)["os"] = recorded
    try:
        yield recorded
    finally:
        vars(storage)["os"] = before


@dataclass
class _Disk:
    """Files by name as the running system sees them, and as they are on the disk."""

    contents: dict[int, bytes] = field(default_factory=dict)
    synced: dict[int, int] = field(default_factory=dict)
    names: dict[Path, int] = field(default_factory=dict)
    durable: dict[Path, int] = field(default_factory=dict)
    pending: list[Operation] = field(default_factory=list)

    def take(self, operation: Operation) -> None:
        """Carries out one operation."""
        match operation:
            case ("write", inode, content):
                self.contents[inode] += content
            case ("sync", inode):
                self.synced[inode] = len(self.contents[inode])
            case ("sync folder", folder):
                for late in [one for one in self.pending if one[1].parent == folder]:
                    _rename(self.durable, late)
                    self.pending.remove(late)
            case ("mkdir", _):
                pass
            case _:
                if operation[0] == "create":
                    self.contents[operation[2]], self.synced[operation[2]] = b"", 0
                _rename(self.names, operation)
                self.pending.append(operation)


def _rename(names: dict[Path, int], operation: Operation) -> None:
    match operation:
        case ("create", path, inode):
            names[path] = inode
        case ("rename", source, target) if source in names:
            names[target] = names.pop(source)
        case ("unlink", path):
            names.pop(path, None)


def survivors(operations: list[Operation], fate: Fate, rng: Random) -> dict[Path, bytes]:
    """Returns the files that are there after a crash that follows some operations.

    Args:
        operations: All that was done before.
        fate: Of what was not synced.
        rng: Decides where `fate` is "chance".
    """
    disk = _Disk()
    for operation in operations:
        disk.take(operation)
    names = dict(disk.durable)
    for late in disk.pending:
        if fate in ("kept", "names kept") or (fate == "chance" and rng.randrange(2)):
            _rename(names, late)
    found = {}
    for path, inode in names.items():
        content, n = disk.contents[inode], disk.synced[inode]
        if fate in ("kept", "content kept"):
            n = len(content)
        elif fate == "chance":
            n = rng.randint(n, len(content))
        found[path] = content[:n]
    return found
