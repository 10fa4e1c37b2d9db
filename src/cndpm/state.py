"""State that is data and never code: nested dictionaries of tensors and plain values in one safetensors file.

A *state* is a tree of dictionaries and lists whose leaves are tensors, numbers, strings, booleans or ``None``.
:func:`save_state` writes it atomically; :func:`load_state` reads it back with the same types and the same bits, and
refuses anything that is not such a file, with the reason.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

__all__ = ["FORMAT_VERSION", "State", "StateError", "load_state", "save_state"]

State = dict[str, Any]
"""A tree of dictionaries (string keys) and lists; leaves are tensors or JSON values."""

FORMAT_VERSION = 1
"""The version of the form of files; others are refused by name."""

_HEADER = "cndpm"
_TENSOR = "$tensor"


class StateError(ValueError):
    """Says why a file is not a state that this version can load."""


def save_state(path: str | Path, state: State, *, kind: str) -> None:
    """Writes a state to one file, whole or not at all.

    Args:
        path: The file; its folder must exist. An existing file is replaced only when the new one is complete.
        state: The tree to write.
        kind: A word for what the state describes ("classifier", "checkpoint", ...); :func:`load_state` needs it again.

    Example:
        >>> import torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_state(f"{folder}/model.cndpm", {"weight": torch.ones(3), "seed": 7}, kind="example")
        ...     load_state(f"{folder}/model.cndpm", kind="example")
        {'weight': tensor([1., 1., 1.]), 'seed': 7}
    """
    path = Path(path)
    tensors: dict[str, Tensor] = {}
    tree = _detach_tensors(state, tensors, "")
    header = json.dumps({"format": FORMAT_VERSION, "kind": kind, "tree": tree})
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        save_file(tensors, temporary, metadata={_HEADER: header})
        with Path(temporary).open("rb+") as written:
            os.fsync(written.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_state(path: str | Path, *, kind: str) -> State:
    """Reads a state written by :func:`save_state`.

    Args:
        path: The file.
        kind: The word that the file was written with; a file of another kind is refused.

    Returns:
        The tree that was written, to the bit, with its tensors on the CPU.

    Raises:
        FileNotFoundError: There is no such file.
        StateError: The file is damaged, of another format, version or kind.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no state file at {path}")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise StateError(f"{path} is not a cndpm state file, or it is damaged: {error}") from error
    if _HEADER not in metadata:
        raise StateError(f"{path} is a safetensors file, but not one that cndpm wrote")
    header = json.loads(metadata[_HEADER])
    if header["format"] != FORMAT_VERSION:
        raise StateError(f"{path} has format {header['format']}; this version of cndpm reads format {FORMAT_VERSION}")
    if header["kind"] != kind:
        raise StateError(f"{path} holds the state of a {header['kind']}; a {kind} was asked for")
    state: State = _attach_tensors(header["tree"], tensors)
    return state


def _detach_tensors(node: Any, tensors: dict[str, Tensor], name: str) -> Any:
    """Copies the tree with every tensor moved to `tensors` and a reference left in its place."""
    if isinstance(node, Tensor):
        # A copy of its own: safetensors refuses tensors that share storage.
        tensors[name] = node.detach().to("cpu", copy=True).contiguous()
        return {_TENSOR: name}
    if isinstance(node, dict):
        for key in node:
            if not isinstance(key, str) or key == _TENSOR:
                raise TypeError(
                    f"state keys are strings other than {_TENSOR!r}; got {key!r} under {name or 'the root'!r}"
                )
        return {key: _detach_tensors(value, tensors, f"{name}/{key}" if name else key) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_detach_tensors(value, tensors, f"{name}/{i}") for i, value in enumerate(node)]
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise TypeError(f"a state holds tensors and plain values; got {type(node).__name__} at {name!r}")


def _attach_tensors(node: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(node, dict):
        if _TENSOR in node:
            return tensors[node[_TENSOR]]
        return {key: _attach_tensors(value, tensors) for key, value in node.items()}
    if isinstance(node, list):
        return [_attach_tensors(value, tensors) for value in node]
    return node
