"""Checks of what a learner is given: it is refused, with the reason, before anything changes."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

LARGEST = 1e15
"""Values beyond it are not learned: sums of their squares, in float32 where experts route, would lose all else."""

BEYOND = 2 * LARGEST
"""Stands for every value beyond the largest in rows, which are answered for, and set aside when they are learned."""

_FEW = 5
"""Rows that may all be beyond: a single one is an accident, many are a column that must be scaled."""

Target = Literal["classes", "values", "none"]
"""Kinds of y: class indices, real values, or none."""


def admit_x(x: Tensor, input_shape: tuple[int, ...]) -> Tensor:
    """Returns inputs (batch, *input_shape) as float32; in rows, values too large to be learned are +- `BEYOND`.

    TypeError, ValueError: they are no finite real numbers of this shape, or most are too large; the message says what
    to do.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a torch tensor; got {type(x).__name__}. Use torch.as_tensor(x).")
    if x.dim() == 0 or tuple(x.shape[1:]) != input_shape:
        wanted = ", ".join(map(str, ("batch", *input_shape)))
        raise ValueError(f"x must have shape ({wanted}); got {tuple(x.shape)}")
    if len(x) == 0:
        raise ValueError("x has no samples: a batch needs at least one")
    if x.dtype is torch.bool or x.is_complex():
        raise TypeError(f"x must hold real numbers; got {x.dtype}")
    x = x.detach().float()
    if x.device.type == "cpu" and np.abs(x.numpy()).max() <= LARGEST:  # quicker than by tensors for a row
        return x
    if len(input_shape) == 1 and _few_are_beyond(x):
        return x.clamp(-BEYOND, BEYOND)
    _check_values(x, "x", "Impute or drop such rows.")
    return x


def _few_are_beyond(rows: Tensor) -> bool:
    """Returns whether all values (n, d) are finite and some of them are too large, in few of the rows."""
    largest = float(rows.abs().max())
    if not LARGEST < largest < torch.inf:  # nor if it is NaN
        return False
    n_beyond = int((rows.abs() > LARGEST).any(dim=1).sum())
    return n_beyond < _FEW or 2 * n_beyond <= len(rows)


def admit_targets(y: Tensor | None, n: int, target: Target, n_outputs: int, n_classes: int | None) -> Tensor | None:
    """Returns targets on the host: class indices int64 (n,), values float32 (n, n_outputs), or None.

    ValueError: y is something else; the message says what to do.
    """
    if target == "none":
        if y is not None:
            raise ValueError("this learner was made for unlabelled data (target='none'); got y. Pass y=None.")
        return None
    if y is None:
        raise ValueError(f"this learner needs y (target={target!r}); got None. For unlabelled data use target='none'.")
    if len(y) != n:
        raise ValueError(f"x and y must have as many rows; got {n} and {len(y)}")
    y = y.detach().cpu()
    return _class_indices(y, n_classes) if target == "classes" else _values(y, n_outputs)


def _class_indices(y: Tensor, n_classes: int | None) -> Tensor:
    if y.dim() != 1 or y.is_floating_point() or y.is_complex():
        raise ValueError(f"y must hold one integer class index a sample; got {y.dtype} of shape {tuple(y.shape)}")
    values = y.numpy()
    lowest, highest = int(values.min()), int(values.max())
    if lowest < 0 or (n_classes is not None and highest >= n_classes):
        allowed = "0 or more" if n_classes is None else f"from 0 to {n_classes - 1}"
        raise ValueError(f"class indices must be {allowed}; got {lowest} to {highest}")
    return y.long()


def _values(y: Tensor, n_outputs: int) -> Tensor:
    y = y.float().reshape(len(y), -1)
    if y.shape[1] != n_outputs:
        raise ValueError(f"y must have {n_outputs} values a sample; got {y.shape[1]}")
    _check_values(y, "y", "Drop such samples.")
    return y


def _check_values(values: Tensor, name: str, remedy: str) -> None:
    if values.device.type == "cpu" and np.abs(values.numpy()).max() <= LARGEST:
        return
    if not bool((values.abs() <= LARGEST).all()):  # nor if one is NaN
        if not bool(torch.isfinite(values).all()):
            raise ValueError(f"{name} contains NaN or infinity; only finite values can be learned. {remedy}")
        largest = float(values.abs().max())
        raise ValueError(f"{name} holds a value of {largest:g}; values up to {LARGEST:g} can be learned. Scale it.")
