"""Saves and loads states: every file says by which version, from which settings, and carries a checksum of all of it.

The layout is that of safetensors, with a tree in JSON as metadata and a SHA-256 over every byte before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from torch import Tensor

from cndpm.state.container import StateError, container_pieces, has_right_checksum, read_container, read_texts
from cndpm.state.tree import State, attach_tensors, detach_tensors
from cndpm.storage import replace_file
from cndpm.version import __version__

__all__ = ["FORMAT_VERSION", "MissingStateError", "StateFile", "load_state", "read_state", "save_state", "state_kind"]

FORMAT_VERSION = 2
"""The version of the form of files; others are refused by name."""

_HEADER = "cndpm state"
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!]{0,39}")
_FIELDS = {"format", "package", "kind", "settings", "tree"}


class MissingStateError(StateError, FileNotFoundError):
    """There is no file of this name."""


@dataclass(frozen=True)
class StateFile:
    """Everything in a file.

    Attributes:
        state: The tree, to the bit, with its tensors on the CPU.
        kind: A word for what the state describes.
        settings: What it was made with, resolved.
        package: The version that wrote it.
        format: Version of the format.
    """

    state: State
    kind: str
    settings: dict[str, Any]
    package: str
    format: int


def save_state(
    path: str | Path, state: State, *, kind: str, settings: dict[str, Any] | None = None, keep: str | Path | None = None
) -> None:
    """Writes a state to one file, whole or not at all; it is on the disk when this returns.

    Args:
        path: The file; its folder must exist. An existing file is replaced only when the new one is complete.
        state: The tree to write.
        kind: A word for what the state describes ("classifier", "checkpoint", ...); :func:`load_state` needs it again.
        settings: What the state was made with, as plain values.
        keep: A name in the same folder under which the file that is replaced stays.

    Raises:
        TypeError: The tree holds something else than dictionaries, lists, tensors and plain values.
        OSError: The folder cannot be written, or the disk is full.

    Example:
        >>> import torch
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     save_state(f"{folder}/model.cndpm", {"weight": torch.ones(3), "seed": 7}, kind="example")
        ...     load_state(f"{folder}/model.cndpm", kind="example")
        {'weight': tensor([1., 1., 1.]), 'seed': 7}
    """
    tensors: dict[str, Tensor] = {}
    header = {
        "format": FORMAT_VERSION,
        "package": __version__,
        "kind": kind,
        "settings": settings or {},
        "tree": detach_tensors(state, tensors),
    }
    pieces = container_pieces({_HEADER: json.dumps(header)}, tensors)
    replace_file(Path(path), pieces, keep=None if keep is None else Path(keep))


def load_state(path: str | Path, *, kind: str) -> State:
    """Reads a state written by :func:`save_state`: the same tree, to the bit, with its tensors on the CPU.

    Args:
        path: The file.
        kind: The word that the file was written with; a file of another kind is refused.

    Raises:
        MissingStateError: There is no such file; a kind of FileNotFoundError.
        StateError: The file is damaged, of another format, version or kind.
    """
    return read_state(path, kind=kind).state


def state_kind(path: str | Path) -> str | None:
    """Returns the word that a file says it was written with; None where it says none, and loading it will say why."""
    try:
        with Path(path).open("rb") as file:
            kind = _header(read_texts(file, Path(path).stat().st_size)[0])["kind"]
    except (StateError, OSError):
        return None
    return kind if isinstance(kind, str) else None


def read_state(path: str | Path, *, kind: str) -> StateFile:
    """Reads a file with what it says of itself. The checksum comes first: nothing is made of a file that is damaged.

    Args:
        path: The file.
        kind: The word that the file was written with; a file of another kind is refused.

    Raises:
        MissingStateError: There is no such file.
        StateError: The file is damaged, of another format, version or kind.
    """
    path = Path(path)
    if not path.exists():
        raise MissingStateError(f"there is no file {path}")
    if not path.is_file():
        raise StateError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            return _read(file, path.stat().st_size, kind)
    except StateError as error:
        raise StateError(f"{path} {error}") from None
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror or error}") from error


def _read(file: BufferedReader, size: int, kind: str) -> StateFile:
    is_whole = has_right_checksum(file, size)
    try:
        container = read_container(file, size, is_whole=is_whole)
    except StateError as error:
        raise StateError(f"is not a cndpm state file, or it is damaged: {error}") from None
    if not is_whole and _HEADER in container.texts:
        raise StateError("is damaged: its checksum does not fit its content. Take another copy of it")
    header = _header(container.texts)
    if header["kind"] != kind:
        raise StateError(f"holds the state of a {repr(str(header['kind'])[:80])[1:-1]}; a {kind} was asked for")
    try:
        state = attach_tensors(header["tree"], container.tensors)
    except (StateError, RecursionError) as error:
        raise StateError(f"is damaged: {error}") from None
    if not isinstance(state, dict):
        raise StateError("is damaged: its tree is no dictionary")
    return StateFile(state, kind, header["settings"], header["package"], header["format"])


def _header(texts: Mapping[str, str]) -> dict[str, Any]:
    """Returns what a file says of itself, once this version understands it."""
    if _HEADER not in texts:
        raise StateError("is a safetensors file, but not one that cndpm wrote")
    try:
        header = json.loads(texts[_HEADER])
    except (ValueError, RecursionError):
        raise StateError("is damaged: what it says of itself is not JSON") from None
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise StateError("is damaged: it does not say which format it has")
    if header["format"] != FORMAT_VERSION:
        by, wrote, install = header.get("package"), "", "a newer version"
        if _is_version(by):
            wrote, install = f" and was written by cndpm {by}", f"cndpm=={by}"
        raise StateError(
            f"has format {header['format']}{wrote}; this version, {__version__}, reads format {FORMAT_VERSION}. "
            f"Install {install} to load it"
        )
    if header.keys() != _FIELDS:
        raise StateError(f"is damaged: it says {sorted(map(str, header))[:9]} of itself")
    if not (isinstance(header["settings"], dict) and _is_version(header["package"])):
        raise StateError("is damaged: its settings are no dictionary, or its version is none")
    return header


def _is_version(text: Any) -> bool:
    """Tells whether a text is a version, which somebody may be told to install."""
    return isinstance(text, str) and _VERSION.fullmatch(text) is not None
