"""Holds a state against what settings say: names, types, shapes and ranges, before anything is made of it.

    sizes = expect(state, {"counts": tensor("experts"), "sums": tensor("experts", "d")}, d=self.n_features)

A letter or word stands for a size: one that is given is compared, one that is not is taken from the first tensor that
has it, and must be the same in all others. Names that the forms do not mention are not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cndpm.state.container import StateError
from cndpm.state.tree import State, copied

Sizes = dict[str, int]
Form = Callable[[str, Any, Sizes], None]
"""Raises StateError for a value that has another form; may add to the sizes that are known."""

Side = int | str


def expect(state: Any, forms: Mapping[str, Form], **sizes: int) -> Sizes:
    """Checks parts of a state by name; returns all sizes, those that are known and those that were found.

    StateError: a name is missing, or what it holds has another form.

    Example:
        >>> state = {"counts": torch.zeros(3, dtype=torch.float64), "step": 4}
        >>> expect(state, {"counts": tensor("experts"), "step": whole()})
        {'experts': 3}
    """
    if not isinstance(state, Mapping):
        raise StateError(f"a dictionary with {', '.join(forms)} was expected; got a {type(state).__name__}")
    known = dict(sizes)
    for name, form in forms.items():
        if name not in state:
            raise StateError(f"{name!r} is missing; there is {', '.join(map(repr, list(state)[:20])) or 'nothing'}")
        form(name, state[name], known)
    return known


def tensor(*shape: Side, dtype: torch.dtype | tuple[torch.dtype, ...] = torch.float64, finite: bool = True) -> Form:
    """Returns the form of a tensor of one of the types allowed; sides are numbers, or words that stand for sizes."""
    allowed = dtype if isinstance(dtype, tuple) else (dtype,)

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, Tensor):
            raise StateError(f"{name!r} must be a tensor; got a {type(value).__name__}")
        if value.dtype not in allowed:
            raise StateError(f"{name!r} must be of {' or '.join(map(str, allowed))}; got {value.dtype}")
        if value.dim() != len(shape):
            raise StateError(f"{name!r} must have the shape {_said(shape, sizes)}; got {tuple(value.shape)}")
        for side, n in zip(shape, value.shape, strict=True):
            if n != (side if isinstance(side, int) else sizes.setdefault(side, n)):
                raise StateError(f"{name!r} must have the shape {_said(shape, sizes)}; got {tuple(value.shape)}")
        if finite and value.is_floating_point() and not value.isfinite().all():
            raise StateError(f"{name!r} must hold finite values; got infinities or NaN")

    return check


def integers(*shape: Side, low: int | None = None, below: int | None = None) -> Form:
    """Returns the form of a tensor of int64 from `low` on and `below` a number."""
    form = tensor(*shape, dtype=torch.int64)

    def check(name: str, value: Any, sizes: Sizes) -> None:
        form(name, value, sizes)
        if value.numel() and low is not None and int(value.min()) < low:
            raise StateError(f"{name!r} must hold numbers from {low} on; got {int(value.min())}")
        if value.numel() and below is not None and int(value.max()) >= below:
            raise StateError(f"{name!r} must hold numbers below {below}; got {int(value.max())}")

    return check


def number(low: float = -math.inf, high: float = math.inf) -> Form:
    """Returns the form of a finite number within a range."""

    def check(name: str, value: Any, _: Sizes) -> None:
        is_number = isinstance(value, float) or (type(value) is int and abs(value) < 1 << 63)  # torch takes no others
        if not (is_number and math.isfinite(value) and low <= value <= high):
            raise StateError(f"{name!r} must be a finite number from {low} to {high}; got {str(value)[:80]!r}")

    return check


def whole(low: int = 0, high: int = 1 << 62) -> Form:
    """Returns the form of a whole number within a range."""

    def check(name: str, value: Any, _: Sizes) -> None:
        if type(value) is not int or not low <= value <= high:
            raise StateError(f"{name!r} must be a whole number from {low} to {high}; got {str(value)[:80]!r}")

    return check


def flag() -> Form:
    """Returns the form of a value that is True or False."""
    return _of_type(bool, "true or false")


def nothing() -> Form:
    """Returns the form of None."""
    return _of_type(type(None), "empty")


def part() -> Form:
    """Returns the form of a dictionary, which whoever it belongs to looks into."""
    return _of_type(Mapping, "a dictionary")


def _of_type(kind: type, said: str) -> Form:
    def check(name: str, value: Any, _: Sizes) -> None:
        if not isinstance(value, kind):
            raise StateError(f"{name!r} must be {said}; got a {type(value).__name__}")

    return check


def listed(form: Form) -> Form:
    """Returns the form of a list of values of one form."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, list):
            raise StateError(f"{name!r} must be a list; got a {type(value).__name__}")
        for one in value:
            form(name, one, sizes)

    return check


def maybe(form: Form) -> Form:
    """Returns a form that also allows None."""
    return lambda name, value, sizes: None if value is None else form(name, value, sizes)


def _said(shape: tuple[Side, ...], sizes: Sizes) -> str:
    sides = [str(side) if isinstance(side, int) or side not in sizes else f"{side}={sizes[side]}" for side in shape]
    return f"({', '.join(sides)})"


__all__ = ["Keeps"]


class Keeps:
    """Keeps tensors, arrays, plain values and parts with a state of their own; `kept` names each with its form.

    What is kept as ``name`` is the attribute ``_name`` where there is one, else ``name``.

    Example:
        >>> from cndpm.state import tensor, whole
        >>> class Counter(Keeps):
        ...     kept = {"counts": tensor("labels"), "n": whole()}
        ...     def __init__(self): self.counts, self._n = np.zeros(0), 0
        >>> counter = Counter()
        >>> counter.load_state_dict({"counts": torch.ones(2, dtype=torch.float64), "n": 2})
        {'labels': 2}
        >>> counter.counts, counter._n
        (array([1., 1.]), 2)
    """

    kept: ClassVar[Mapping[str, Form]] = {}

    def state_dict(self) -> State:
        """Returns everything that is kept."""
        return {name: _saved(getattr(self, self._attribute(name))) for name in self.kept}

    def load_state_dict(self, state: State, **sizes: int) -> Sizes:
        """Restores it to the bit, or raises StateError before anything is changed; returns all sizes.

        Args:
            state: As :meth:`state_dict` returns it.
            **sizes: Sizes that are known.
        """
        found = expect(state, self.kept, **sizes)
        self._admit(state)
        for name in self.kept:
            attribute = self._attribute(name)
            setattr(self, attribute, _restored(state[name], getattr(self, attribute, None)))
        return found

    def _admit(self, state: State) -> None:
        """Raises StateError for a state that has the right form and cannot be."""

    def _attribute(self, name: str) -> str:
        return f"_{name}" if f"_{name}" in vars(self) else name


def _saved(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return torch.from_numpy(np.stack(value))
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())  # three times as fast as torch.tensor where arrays are small
    return value.state_dict() if hasattr(value, "state_dict") else copied(value)


def _restored(value: Any, now: Any) -> Any:
    """Returns a value of a state as what is there now: a part that is given its state, a tensor, or arrays."""
    if hasattr(now, "load_state_dict"):
        now.load_state_dict(value)
        return now
    is_array = isinstance(value, Tensor) and not isinstance(now, Tensor)
    restored = value.cpu().numpy().copy() if is_array else copied(value)
    return list(restored) if is_array and isinstance(now, list) else restored
