"""Arrays as they come from outside: tensors of any kind, values that are too large, things that are no arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cndpm.model.inputs import LARGEST

__all__ = ["admit_magnitude", "admit_number", "as_array", "readable", "whole_number"]


def as_array(values: Any, name: str) -> Any:
    """Returns tensors and masked arrays as plain arrays; everything else as it is.

    Args:
        values: Anything.
        name: What a message calls it.
    """
    if isinstance(values, np.ma.MaskedArray):
        n_masked = int(np.ma.getmaskarray(values).sum())
        if n_masked:
            raise ValueError(f"{name} has {n_masked} masked values, which cannot be learned. Impute or drop them.")
        return values.data
    if not isinstance(values, Tensor):
        return values
    values = values.detach()
    if values.is_meta:
        raise ValueError(f"{name} is a tensor on the device 'meta', which has no values")
    if values.is_complex():
        raise ValueError(f"Complex data not supported: {name} is a tensor of {values.dtype}")
    dense = values.to_dense() if values.layout.__str__() != "torch.strided" else values
    return (dense.float() if dense.is_floating_point() and dense.element_size() < 4 else dense).cpu().numpy()


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turns whatever is raised by things that only look like arrays into a TypeError.

    Args:
        name: What a message calls it.
    """
    try:
        yield
    except (ValueError, TypeError, Warning, MemoryError):
        raise
    except Exception as error:
        raise TypeError(f"{name} cannot be read as an array of numbers: {type(error).__name__}: {error}") from error


def admit_magnitude(values: NDArray[Any], name: str) -> None:
    """Checks that numbers are small enough to be squared and added.

    Args:
        values: Finite numbers of any shape.
        name: What a message calls it.

    Raises:
        ValueError: One is too large; the message says where.
    """
    if values.size and max(float(values.max()), -float(values.min())) > LARGEST:
        place = np.unravel_index(np.abs(values).argmax(), values.shape)
        where = ", ".join(str(int(i)) for i in place)
        raise ValueError(
            f"{name}[{where}] is {float(values[place]):g}; values up to {LARGEST:g} can be learned. Scale that column, "
            "or leave out the row if the value stands for something that is missing."
        )


def whole_number(value: Any, name: str, *, least: int, most: int) -> int:
    """Returns an argument that is a whole number.

    Args:
        value: What came.
        name: What a message calls it.
        least: The smallest allowed.
        most: The largest allowed.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number; got {value!r}")
    if not least <= int(value) <= most:
        raise ValueError(f"{name} must lie between {least} and {most}; got {value}")
    return int(value)


def admit_number(value: Any, name: str) -> float:
    """Returns an argument that is a real number, not NaN.

    Args:
        value: What came.
        name: What a message calls it.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r}")
    if np.isnan(float(value)):
        raise ValueError(f"{name} must be a number; got nan")
    return float(value)
