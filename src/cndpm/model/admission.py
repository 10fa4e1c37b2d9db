"""Checks at the door: what a learner is given is refused, with the reason, before anything changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeVar

import torch
from torch import Tensor

__all__ = ["Fetch", "FiniteCheck", "admit_targets", "admit_x", "rows_like"]

T = TypeVar("T")

_ALIGNMENT = 64
"""Bytes. Matrix products may round differently for other alignments; the same batch must give the same bits."""


_MOST_NEIGHBOURS = 100
"""Batches in a larger tensor that is still looked through as a whole."""


class _OfBlock(Generic[T]):
    """A function of the block that batches are cut from, computed at its first batch.

    On a GPU every look and every copy is a wait.
    """

    def __init__(self, function: Callable[[Tensor], T]) -> None:
        self._function = function
        self._known: tuple[Tensor, int, T] | None = None

    def __call__(self, part: Tensor) -> tuple[Tensor, T] | None:
        """The block that `part` was cut from and its value; None where there is none, or it is too large."""
        whole = part._base
        if whole is None or whole.numel() > _MOST_NEIGHBOURS * part.numel():
            return None
        if self._known is None or self._known[0] is not whole or self._known[1] != whole._version:
            self._known = (whole, whole._version, self._function(whole))
        return whole, self._known[2]


class FiniteCheck:
    """Says whether a batch is finite; a block that batches are cut from is looked through once, at its first batch."""

    def __init__(self) -> None:
        self._of_block = _OfBlock(_all_finite)

    def __call__(self, x: Tensor) -> bool:
        """Whether all values of x are finite."""
        block = self._of_block(x)
        return (block is not None and block[1]) or _all_finite(x)


class Fetch:
    """Brings batches to a device; a block that batches are cut from comes over once, at its first batch.

    Args:
        device: Where to.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._of_block = _OfBlock(lambda whole: whole.to(device))

    def __call__(self, y: Tensor) -> Tensor:
        """y (batch, ...) on the device."""
        if y.device.type == self._device.type:
            return y.to(self._device)
        block = self._of_block(y)
        if block is None or y.stride() != block[0].stride() or not block[0].is_contiguous():
            return y.to(self._device)
        return rows_like(y, *block)


def rows_like(part: Tensor, whole: Tensor, other: Tensor) -> Tensor:
    """The rows of `other` that stand where `part`, some consecutive rows of `whole`, stands."""
    first = (int(part.storage_offset()) - int(whole.storage_offset())) // max(1, whole.stride(0))
    return other[first : first + len(part)]


def _all_finite(x: Tensor) -> bool:
    return bool(torch.isfinite(x).all())


def admit_x(x: Tensor, input_shape: tuple[int, ...], is_finite: Callable[[Tensor], bool] | None = None) -> Tensor:
    """Inputs (batch, *input_shape) as float32, or a ValueError that says what came and what is allowed.

    Args:
        x: What came.
        input_shape: Shape of one sample.
        is_finite: A :class:`FiniteCheck` that remembers, for many batches.
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
    x = x.float().contiguous()
    if x.data_ptr() % _ALIGNMENT:
        x = x.clone()
    if not (is_finite or _all_finite)(x):
        raise ValueError("x contains NaN or infinity; only finite values can be learned. Impute or drop such rows.")
    return x


def admit_targets(
    y: Tensor | None,
    n: int,
    target: Literal["classes", "values", "none"],
    n_outputs: int,
    n_classes: int | None,
) -> Tensor | None:
    """Targets of n samples: class indices int64 (n,), values float32 (n, n_outputs), or None."""
    if target == "none":
        if y is not None:
            raise ValueError("this learner was made for unlabelled data (target='none'); got y. Pass y=None.")
        return None
    if y is None:
        raise ValueError(f"this learner needs y (target={target!r}); got None. For unlabelled data use target='none'.")
    if len(y) != n:
        raise ValueError(f"x and y must have as many rows; got {n} and {len(y)}")
    return _class_indices(y, n_classes) if target == "classes" else _values(y, n_outputs)


def _class_indices(y: Tensor, n_classes: int | None) -> Tensor:
    if y.dim() != 1 or y.is_floating_point() or y.is_complex():
        raise ValueError(f"y must hold one integer class index a sample; got {y.dtype} of shape {tuple(y.shape)}")
    lowest, highest = (int(bound) for bound in torch.aminmax(y))
    if lowest < 0 or (n_classes is not None and highest >= n_classes):
        allowed = "0 or more" if n_classes is None else f"from 0 to {n_classes - 1}"
        raise ValueError(f"class indices must be {allowed}; got {lowest} to {highest}")
    return y.long()


def _values(y: Tensor, n_outputs: int) -> Tensor:
    y = y.float().reshape(len(y), -1)
    if y.shape[1] != n_outputs:
        raise ValueError(f"y must have {n_outputs} values a sample; got {y.shape[1]}")
    if not torch.isfinite(y).all():
        raise ValueError("y contains NaN or infinity; only finite values can be learned")
    return y
