"""The machine that carries out the instructions of a pickle, as far as plain containers and numpy arrays need it.

It never looks a name up and never calls what a pickle names: the few names that arrays need stand for actions of its
own. Memory grows no faster than the pickle: what is decoded, and what goes into arrays, is counted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.datasets.files import RefusedPickleError

__all__ = ["PickleMachine"]

_MOST_DIMENSIONS = 8
_ADMITTED = {
    "numpy.core.multiarray _reconstruct": "array",  # numpy 1
    "numpy._core.multiarray _reconstruct": "array",  # numpy 2
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
    "_codecs encode": "encode",  # a byte string written for Python 2
    "__builtin__ bytes": "bytes",  # an empty one
}
_TYPES = frozenset({"b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"})


class _Name:
    """Stands for one of the names of `_ADMITTED`."""

    __slots__ = ("meaning",)

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning


class _Type:
    """Stands for a type of numbers until an array needs it; a pickle states its byte order afterwards."""

    __slots__ = ("code", "order")

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "="


class PickleMachine:
    """Carries out the instructions of one pickle.

    Args:
        n_bytes: Length of the pickle; what is decoded and what is in arrays may each take as much again.

    Example:
        >>> machine = PickleMachine(n_bytes=100)
        >>> machine.push({})
        >>> machine.set_items(["labels", [3, 1]])
        >>> machine.result()
        {'labels': [3, 1]}
    """

    def __init__(self, n_bytes: int) -> None:
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._left = 2 * n_bytes

    def result(self) -> Any:
        """Returns the one value that is left."""
        if len(self._stack) != 1 or self._marks:
            raise RefusedPickleError("the pickle leaves more or less than one value")
        return self._stack[0]

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        if not self._stack or (self._marks and self._marks[-1] == len(self._stack)):
            raise RefusedPickleError("an instruction takes more values than there are")
        return self._stack.pop()

    def top(self, kind: type) -> Any:
        """Returns the last value without taking it; it must be a `kind`."""
        value = self.pop()
        self.push(value)
        if type(value) is not kind:
            raise RefusedPickleError(f"an instruction needs a {kind.__name__}, not a {type(value).__name__}")
        return value

    def mark(self) -> None:
        self._marks.append(len(self._stack))

    def pop_to_mark(self) -> list[Any]:
        if not self._marks:
            raise RefusedPickleError("an instruction asks for a mark where there is none")
        begin = self._marks.pop()
        values = self._stack[begin:]
        del self._stack[begin:]
        return values

    def put(self, key: int | None) -> None:
        value = self.pop()
        self.push(value)
        self._memo[len(self._memo) if key is None else key] = value

    def get(self, key: int) -> None:
        if key not in self._memo:
            raise RefusedPickleError(f"nothing was remembered as number {key}")
        self.push(self._memo[key])

    def set_items(self, flat: list[Any]) -> None:
        """Adds keys and values, one after the other in `flat`, to the dictionary on top."""
        held = self.top(dict)
        if len(flat) % 2 or not all(type(key) in (str, bytes, int) for key in flat[::2]):
            raise RefusedPickleError("a dictionary's keys must be text, bytes or numbers, each with a value")
        held.update(zip(flat[::2], flat[1::2], strict=True))

    def name(self, text: str) -> None:
        if text not in _ADMITTED:
            raise RefusedPickleError(f"the pickle asks for {text}; only arrays and plain containers are admitted")
        self.push(_Name(_ADMITTED[text]))

    def name_from_stack(self) -> None:
        name, module = self.pop(), self.pop()
        self.name(f"{module} {name}" if type(module) is type(name) is str else "something without a name")

    def call(self) -> None:
        """Makes what a name and its arguments stand for."""
        arguments, name = self.pop(), self.pop()
        if type(name) is not _Name or type(arguments) is not tuple:
            raise RefusedPickleError("the pickle calls something; only arrays and plain containers are admitted")
        if name.meaning == "array":
            self.push(np.empty(0, np.uint8))  # its state follows; the arguments are always (ndarray, (0,), b"b")
        elif name.meaning == "bytes" and not arguments:
            self.push(b"")
        elif name.meaning == "dtype" and arguments and _text(arguments[0]) in _TYPES:
            self.push(_Type(_text(arguments[0])))
        elif name.meaning == "encode" and len(arguments) == 2 and type(arguments[0]) is str:
            self._encode(arguments[0], _text(arguments[1]))
        else:
            raise RefusedPickleError(f"the pickle uses {name.meaning} with other arguments than an array's")

    def _encode(self, text: str, codec: str) -> None:
        if codec != "latin1":
            raise RefusedPickleError(f"the pickle asks for the codec {codec!r}; only 'latin1' is admitted")
        self._spend(len(text))
        self.push(text.encode("latin1"))

    def build(self) -> None:
        """Gives the array or type on top its state."""
        state = self.pop()
        value = self.pop()
        self.push(value)
        if type(value) is _Type and type(state) is tuple and len(state) > 1 and _text(state[1]) in ("<", ">", "|", "="):
            value.order = _text(state[1])
        elif type(value) is np.ndarray and type(state) is tuple and len(state) == 5:
            self._fill(value, *state[1:])
        else:
            raise RefusedPickleError("the pickle sets an object's state; only arrays and plain containers are admitted")

    def _fill(self, array: NDArray[Any], shape: Any, kind: Any, is_fortran: Any, content: Any) -> None:
        if type(kind) is not _Type or type(content) is not bytes or type(shape) is not tuple:
            raise RefusedPickleError("an array should have a shape, a type of numbers and bytes")
        dtype = np.dtype(("=" if kind.order == "|" else kind.order) + kind.code)
        is_shape = len(shape) <= _MOST_DIMENSIONS and all(type(n) is int and 0 <= n < 1 << 31 for n in shape)
        if not is_shape or math.prod(shape) * dtype.itemsize != len(content):
            raise RefusedPickleError(f"an array holds {len(content)} bytes of {dtype}, other than its shape asks for")
        self._spend(len(content))
        state: Any = (1, shape, dtype, bool(is_fortran), content)
        array.__setstate__(state)  # in place: it may be remembered already

    def _spend(self, n_bytes: int) -> None:
        self._left -= n_bytes
        if self._left < 0:
            raise RefusedPickleError("the pickle makes more bytes than it holds")


def _text(value: Any) -> str:
    """Returns text that Python 2 wrote as bytes; other things have no text."""
    if type(value) is bytes:
        return value.decode("latin1")
    return value if type(value) is str else ""
