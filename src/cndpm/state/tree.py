"""Trees of tensors and plain values: taken apart for a file, put together again, and compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from cndpm.state.container import StateError

__all__ = ["State", "attach_tensors", "check_same_form", "detach_tensors", "non_finite"]

State = dict[str, Any]
"""A tree of dictionaries (string keys) and lists; leaves are tensors or JSON values."""

_TENSOR = "$tensor"


def detach_tensors(node: Any, tensors: dict[str, Tensor], name: str = "") -> Any:
    """Copies a tree with a reference in place of every tensor.

    Args:
        node: The tree.
        tensors: Receives the tensors by their names, on the host and contiguous.
        name: Of the tree within a larger one.

    Raises:
        TypeError: It holds something else than dictionaries, lists, tensors and plain values.
    """
    if isinstance(node, Tensor):
        tensors[name] = node.detach().cpu().contiguous()
        return {_TENSOR: name}
    if isinstance(node, dict):
        for key in node:
            if not isinstance(key, str) or key == _TENSOR:
                raise TypeError(
                    f"state keys are strings other than {_TENSOR!r}; got {key!r} under {name or 'the root'!r}"
                )
        return {key: detach_tensors(value, tensors, f"{name}/{key}" if name else key) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [detach_tensors(value, tensors, f"{name}/{i}") for i, value in enumerate(node)]
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise TypeError(f"a state holds tensors and plain values; got {type(node).__name__} at {name!r}")


def attach_tensors(tree: Any, tensors: dict[str, Tensor]) -> Any:
    """Returns a tree with its tensors in their places.

    Args:
        tree: As :func:`detach_tensors` returned it.
        tensors: By name.

    Raises:
        StateError: A tensor is missing, or is in no place of the tree, or in more than one.
    """
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
    if isinstance(node, list):
        return [_attached(value, waiting) for value in node]
    return node


def non_finite(state: Any) -> list[str]:
    """Returns the names of all tensors in a tree that hold infinities or NaN.

    Example:
        >>> import torch
        >>> non_finite({"a": torch.zeros(2), "b": [torch.tensor(float("nan"))]})
        ['b/0']
    """
    tensors: dict[str, Tensor] = {}
    detach_tensors(state, tensors)
    return [name for name, tensor in tensors.items() if tensor.is_floating_point() and not tensor.isfinite().all()]


def check_same_form(state: Any, made: Any) -> None:
    """Compares a state that was loaded with the one of what was made from it: names, shapes and types.

    Args:
        state: A tree.
        made: Another.

    Raises:
        StateError: They differ, with the first place where they do.
    """
    for given, kept in zip(_forms(state), _forms(made), strict=False):
        if given != kept:
            raise StateError(f"{given[0]} is {given[1]}; {kept[1]} is what fits at {kept[0]}")
    if sum(1 for _ in _forms(state)) != sum(1 for _ in _forms(made)):
        raise StateError("it does not have the names that belong to its settings")


def _forms(node: Any, name: str = "state") -> Iterator[tuple[str, str]]:
    """Yields every leaf's name with its type and shape; states of random generators differ between devices."""
    if name.endswith("/generator"):
        return
    if isinstance(node, dict):
        yield name, f"names {sorted(node)}"
        for key in sorted(node):
            yield from _forms(node[key], f"{name}/{key}")
    elif isinstance(node, list | tuple):
        yield name, f"{len(node)} items"
        for i, value in enumerate(node):
            yield from _forms(value, f"{name}/{i}")
    elif isinstance(node, Tensor):
        yield name, f"a tensor {tuple(node.shape)} of {str(node.dtype).removeprefix('torch.')}"
    else:
        yield name, f"a {type(node).__name__}"


def _some(names: Any, n: int = 3) -> str:
    listed = list(names)
    return ", ".join(map(repr, listed[:n])) + (f" and {len(listed) - n} more" if len(listed) > n else "")
