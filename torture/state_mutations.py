"""Changes to states whose checksum is made to fit again: what only names, types, shapes and values can tell.

A hostile file can hold anything; loading it may be refused, or give a model that answers otherwise, but must neither
end the process nor raise anything foreign, at once or when the model is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor

from cndpm.state.container import Container, container_pieces, read_container

__all__ = ["VALUES", "mutate_state"]

VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    1,
    -1,
    7,
    5000,
    1 << 40,
    -(1 << 70),
    0.5,
    -1e300,
    1e308,
    1e-320,
    float("nan"),
    float("inf"),
    10**400,
    1 << 31,
    "",
    "x",
    "0",
    "\ud800",
    "\x1b[31m" * 100,
    [],
    {},
    [1],
    {"a": 1},
)
"""What stands in place of what a file says."""
_TYPES = (torch.float64, torch.float32, torch.int64, torch.int32, torch.uint8, torch.bool, torch.float16)
_HEADER = "cndpm state"


def mutate_state(path: Path, rng: Random) -> tuple[str, bytes]:
    """Changes one to three things in a state file and seals it again; what has lost all parts is left alone.

    Args:
        path: A valid file.
        rng: The only source of chance.

    Returns:
        The names of what was done, and the content of the file.
    """
    content = _content(path)
    header, tensors = json.loads(content.texts[_HEADER]), dict(content.tensors)
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choice((_change_tensor, _change_tensor, _change_leaf, _change_tree))
        done.append(change(header, tensors, rng))
    return " + ".join(done), b"".join(container_pieces({_HEADER: json.dumps(header)}, tensors))


@cache
def _content(path: Path) -> Container:
    """Returns what a file holds, which no change alters and of which thousands are made."""
    with path.open("rb") as file:
        return read_container(file, path.stat().st_size)


def _change_tensor(_: Any, tensors: dict[str, Tensor], rng: Random) -> str:
    if not tensors:
        return "no tensors left"
    name = rng.choice(sorted(tensors))
    how = rng.choice(sorted(_TENSOR_CHANGES))
    before = tensors[name]
    tensors[name] = _TENSOR_CHANGES[how](before, rng).contiguous()
    return f"{name} {how}"


def _set_value(tensor: Tensor, rng: Random) -> Tensor:
    changed = tensor.clone()
    if changed.numel():
        value = rng.choice((0, 1, -1, 255, 3e38, float("nan"), float("inf"), -float("inf")))
        is_float = changed.is_floating_point()
        changed.view(-1)[rng.randrange(changed.numel())] = value if is_float else int(rng.choice((0, 1, 7, 127)))
        if changed.dtype is torch.int64:
            changed.view(-1)[rng.randrange(changed.numel())] = rng.choice((-1, 9, 1 << 40, -(1 << 62)))
    return changed


def _resize(tensor: Tensor, rng: Random) -> Tensor:
    if not tensor.dim():
        return tensor.reshape(1)
    side = rng.randrange(tensor.dim())
    n = max(0, tensor.shape[side] + rng.choice((-2, -1, 1, 2)))
    repeated = torch.cat(
        [tensor, tensor, torch.zeros(*(3 if i == side else s for i, s in enumerate(tensor.shape))).to(tensor)], side
    )
    return repeated.narrow(side, 0, min(n, repeated.shape[side]))


def _wrap(tensor: Tensor, rng: Random) -> Tensor:
    """Makes three whole numbers so large that their sum is what it was, in 64 bits."""
    changed = tensor.clone()
    if changed.dtype is torch.int64 and changed.numel() >= 3:
        half = (1 << 63) - 1000
        changed.view(-1)[rng.sample(range(changed.numel()), 3)] += torch.tensor([half, half, 2000])
    return changed


_TENSOR_CHANGES: dict[str, Callable[[Tensor, Random], Tensor]] = {
    "cast": lambda tensor, rng: tensor.to(rng.choice(_TYPES)),
    "value": _set_value,
    "wrapped": _wrap,
    "resized": _resize,
    "transposed": lambda tensor, _: tensor.T if tensor.dim() == 2 else tensor.flatten(),
    "emptied": lambda tensor, _: tensor[:0] if tensor.dim() else tensor.reshape(1)[:0],
    "unsqueezed": lambda tensor, _: tensor[None],
    "zeroed": lambda tensor, _: torch.zeros_like(tensor),
}


def _nodes(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the paths of all dictionaries and lists below a node, and of their items."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [found for key, value in inner for found in ((*path, key), *_nodes(value, (*path, key)))]


def _parent(header: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        header = header[key]
    return header


def _change_leaf(header: Any, _: dict[str, Tensor], rng: Random) -> str:
    path = rng.choice(_nodes(header))
    _parent(header, path)[path[-1]] = deepcopy(rng.choice(VALUES))
    return f"{'/'.join(map(str, path))} replaced"


def _change_tree(header: Any, tensors: dict[str, Tensor], rng: Random) -> str:
    """Drops, doubles, renames or exchanges a part; tensors without a place go too, so that the change is met itself."""
    if not (nodes := _nodes(header["tree"])):
        return "no tree left"
    path = rng.choice(nodes)
    node, key = _parent(header["tree"], path), path[-1]
    how = rng.choice(("dropped", "renamed", "exchanged", "doubled"))
    if how == "dropped":
        del node[key]
    elif isinstance(node, dict) and how == "renamed":
        node[f"{key}x"] = node.pop(key)
    else:
        other = rng.choice(list(node) if isinstance(node, dict) else list(range(len(node))))
        node[key], node[other] = (node[other], node[key]) if how == "exchanged" else (node[key], deepcopy(node[key]))
    named = set(_references(header["tree"]))
    for name in [name for name in tensors if name not in named]:
        del tensors[name]
    return f"{'/'.join(map(str, path))} {how}"


def _references(node: Any) -> list[str]:
    if isinstance(node, dict) and isinstance(node.get("$tensor"), str):
        return [node["$tensor"]]
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [name for value in inner for name in _references(value)]
