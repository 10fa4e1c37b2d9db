"""Trees of tensors and plain values: taken apart for a file, put together again, and compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from cndpm.state.container import StateError

__all__ = ["State"]

State = dict[str, Any]
"""A tree of dictionaries (string keys) and lists; leaves are tensors or JSON values."""

_TENSOR = "$tensor"


def detach_tensors(node: Any, tensors: dict[str, Tensor], name: str = "") -> Any:
    """Copies a tree with a reference in place of every tensor; TypeError for what no state may hold."""
    if isinstance(node, Tensor):
        tensors[name] = node.detach().cpu().contiguous()
        return {_TENSOR: name}
    if isinstance(node, dict):
        for key in node:
            if not isinstance(key, str) or key == _TENSOR:
                raise TypeError(f"state keys are strings other than {_TENSOR!r}; got {key!r} under {name!r}")
        return {key: detach_tensors(value, tensors, f"{name}/{key}" if name else key) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [detach_tensors(value, tensors, f"{name}/{i}") for i, value in enumerate(node)]
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise TypeError(f"a state holds tensors and plain values; got {type(node).__name__} at {name!r}")


def attach_tensors(tree: Any, tensors: dict[str, Tensor]) -> Any:
    """Returns a tree with its tensors in their places; StateError unless each has exactly one."""
    waiting = dict(tensors)
    made = _attached(tree, waiting)
    if waiting:
        raise StateError(f"tensors without a place in its tree: {_some(waiting)}")
    return made


def _attached(node: Any, waiting: dict[str, Tensor]) -> Any:
    if isinstance(node, dict):
        if _TENSOR not in node:
            return {key: _attached(value, waiting) for key, value in node.items()}
        name = node[_TENSOR]
        if not isinstance(name, str) or name not in waiting:
            raise StateError(f"its tree names the tensor {str(name)[:80]!r}, which is not there or is named twice")
        return waiting.pop(name)
    return [_attached(value, waiting) for value in node] if isinstance(node, list) else node


def copied(tree: Any, device: torch.device | str | None = None) -> Any:
    """Copies a tree with its tensors, to another device where one is given."""
    return exchanged(tree, Tensor, lambda one: one.detach().to(one.device if device is None else device, copy=True))


def exchanged(tree: Any, kind: type, make: Callable[[Any], Any]) -> Any:
    """Copies a tree with what is made of it in place of every leaf of a kind."""
    if isinstance(tree, kind):
        return make(tree)
    if isinstance(tree, dict):
        return {key: exchanged(value, kind, make) for key, value in tree.items()}
    return [exchanged(value, kind, make) for value in tree] if isinstance(tree, list) else tree


def non_finite(state: Any, beyond: float = math.inf) -> list[str]:
    """Returns the names of all tensors in a tree that hold infinities or NaN, or numbers as large as `beyond`.

    Example:
        >>> import torch
        >>> non_finite({"a": torch.zeros(2), "b": [torch.tensor(float("nan"))]})
        ['b/0']
    """
    tensors: dict[str, Tensor] = {}
    detach_tensors(state, tensors)
    return [name for name, each in tensors.items() if each.is_floating_point() and not (each.abs() < beyond).all()]


def check_same_form(state: Any, made: Any, name: str = "state") -> None:
    """Compares a state that was loaded with the one of what was made from it: names, shapes and types.

    StateError says the first place where they differ; `name` is that of the tree within a larger one. The second may
    have more names. States of random generators, which differ between devices, are not compared.
    """
    if name.endswith("/generator"):
        return
    given, kept = _form(state), _form(made)
    if given != kept:
        raise StateError(f"{name} is {given}; {kept} is what fits there")
    if isinstance(state, dict) and (more := sorted(state.keys() - made.keys())):
        raise StateError(f"{name} has {_some(more)}, which does not belong there")
    inner = state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, list | tuple) else ()
    for key, value in inner:
        check_same_form(value, made[key], f"{name}/{key}")


def _form(node: Any) -> str:
    if isinstance(node, Tensor):
        return f"a tensor {tuple(node.shape)} of {str(node.dtype).removeprefix('torch.')}"
    if isinstance(node, list | tuple):
        return f"a list of {len(node)}"
    return f"a {type(node).__name__}"


def _some(names: Any) -> str:
    listed = list(names)
    return ", ".join(map(repr, listed[:3])) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")
