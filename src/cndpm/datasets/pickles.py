"""CIFAR10 and CIFAR100, and pickled arrays without pickled code.

They are published in a "python version" of pickled batches: programs for a small machine that can name any function and
have it called. Here Python's unpickler in Python (the compiled one sets memory aside as a file says) knows the
instructions for plain containers alone, finds the names that arrays need, which stand for actions of this module, and
counts what it makes: memory grows no faster than the pickle.
"""

from __future__ import annotations

import math
import pickle
import pickletools
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cndpm.datasets.files import DamagedFileError, RefusedPickleError, read_bytes

_MOST_INSTRUCTIONS = 4_000_000  # CIFAR100's training set takes about 300,000
_MOST_DIMENSIONS = 8
_INSTRUCTIONS = """
    PROTO FRAME LONG1 LONG4 BININT BININT1 BININT2 BINFLOAT BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES
    SHORT_BINBYTES BINBYTES8 BINSTRING SHORT_BINSTRING NONE NEWTRUE NEWFALSE EMPTY_LIST EMPTY_DICT EMPTY_TUPLE TUPLE1
    TUPLE2 TUPLE3 MARK TUPLE APPEND APPENDS SETITEM SETITEMS BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET GLOBAL
    STACK_GLOBAL REDUCE BUILD STOP
"""
_NAMES = {
    "numpy.core.multiarray _reconstruct": "array",  # numpy 1
    "numpy._core.multiarray _reconstruct": "array",  # numpy 2
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
    "_codecs encode": "encode",  # a byte string written for Python 2
    "__builtin__ bytes": "bytes",  # an empty one
}
_TYPES = frozenset({"b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"})
_ONLY = "only arrays and plain containers are admitted"


class _Name(NamedTuple):
    """Stands for one of `_NAMES`."""

    meaning: str


@dataclass(eq=False)
class _Type:
    """Stands for a type of numbers; a pickle states its byte order afterwards."""

    code: str
    order: str = "="


class _Dispatch(dict[int, Any]):
    """The admitted instructions by code; it counts how often one is asked for."""

    def __init__(self, known: dict[int, Any]) -> None:
        admitted = set(_INSTRUCTIONS.split())
        super().__init__({ord(op.code): known[ord(op.code)] for op in pickletools.opcodes if op.name in admitted})
        self._left = _MOST_INSTRUCTIONS

    def __getitem__(self, code: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise RefusedPickleError(f"the pickle has more than {_MOST_INSTRUCTIONS} instructions")
        if code not in self:
            name = next((op.name for op in pickletools.opcodes if ord(op.code) == code), f"number {code}")
            raise RefusedPickleError(f"the pickle uses the instruction {name}; {_ONLY}")
        return super().__getitem__(code)


_Base: Any = vars(pickle)["_Unpickler"]


class _Unpickler(_Base):  # type: ignore[misc]
    """Makes plain containers and arrays; what is decoded and what goes into arrays is counted."""

    def __init__(self, file: BytesIO, size: int) -> None:
        super().__init__(file, fix_imports=False, encoding="bytes")
        own = {"REDUCE": self._call, "BUILD": self._build, "SETITEM": self._set_item, "SETITEMS": self._set_items}
        codes = {op.name: ord(op.code) for op in pickletools.opcodes}
        replaced = {codes[name]: lambda _, do=do: do() for name, do in {**own, "STOP": self._stop}.items()}
        self.dispatch = _Dispatch({**_Base.dispatch, **replaced})
        self._left = 2 * size

    def find_class(self, module: str, name: str) -> _Name:
        if f"{module} {name}" not in _NAMES:
            raise RefusedPickleError(f"the pickle asks for {module} {name}; {_ONLY}")
        return _Name(_NAMES[f"{module} {name}"])

    def _stop(self) -> None:
        if len(self.stack) != 1 or self.metastack:
            raise RefusedPickleError("the pickle leaves more or less than one value")
        _Base.load_stop(self)

    def _set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._update([key, value])

    def _set_items(self) -> None:
        self._update(self.pop_mark())

    def _update(self, flat: list[Any]) -> None:
        """Adds keys and values to the dictionary on top; hashing what is nested would overflow the C stack."""
        if type(self.stack[-1]) is not dict:
            raise RefusedPickleError(f"an instruction needs a dict, not a {type(self.stack[-1]).__name__}")
        if len(flat) % 2 or not all(type(key) in (str, bytes, int) for key in flat[::2]):
            raise RefusedPickleError("a dictionary's keys must be text, bytes or numbers, each with a value")
        self.stack[-1].update(zip(flat[::2], flat[1::2], strict=True))

    def _call(self) -> None:
        """Makes what a name and its arguments stand for."""
        arguments, name = self.stack.pop(), self.stack.pop()
        if type(name) is not _Name or type(arguments) is not tuple:
            raise RefusedPickleError(f"the pickle calls something; {_ONLY}")
        texts = [_text(argument) for argument in arguments]
        if name.meaning == "array":
            self.append(np.empty(0, np.uint8))  # its state follows; the arguments are always (ndarray, (0,), b"b")
        elif name.meaning == "bytes" and not arguments:
            self.append(b"")
        elif name.meaning == "dtype" and arguments and texts[0] in _TYPES:
            self.append(_Type(texts[0]))
        elif name.meaning == "encode" and len(arguments) == 2 and type(arguments[0]) is str:
            if texts[1] != "latin1":
                raise RefusedPickleError(f"the pickle asks for the codec {texts[1]!r}; only 'latin1' is admitted")
            self._spend(len(texts[0]))
            self.append(texts[0].encode("latin1"))
        else:
            raise RefusedPickleError(f"the pickle uses {name.meaning} with other arguments than an array's")

    def _build(self) -> None:
        """Gives the array or type on top its state."""
        state, value = self.stack.pop(), self.stack[-1]
        if type(value) is _Type and type(state) is tuple and len(state) > 1 and _text(state[1]) in ("<", ">", "|", "="):
            value.order = _text(state[1])
        elif type(value) is np.ndarray and type(state) is tuple and len(state) == 5:
            self._fill(value, *state[1:])
        else:
            raise RefusedPickleError(f"the pickle sets an object's state; {_ONLY}")

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


def read_pickle(path: Path) -> Any:
    """Reads a pickle of arrays, lists, dictionaries, tuples, numbers and strings (Python 2's become bytes).

    RefusedPickleError is raised where it would call or import something else, holds objects, or is damaged.
    """
    content = read_bytes(path)
    file = BytesIO(content)
    try:
        value = _Unpickler(file, len(content)).load()
        if file.read(1):
            raise RefusedPickleError("something follows the pickle")
        return value
    except RefusedPickleError as error:
        raise RefusedPickleError(f"{path} is refused: {error}. Get the file anew.") from None
    except Exception as error:  # the unpickler raises many kinds for garbage
        raise RefusedPickleError(f"{path} is not a readable pickle: {error}. Get the file anew.") from error


def _text(value: Any) -> str:
    """Returns text that Python 2 wrote as bytes; other things have no text."""
    if type(value) is bytes:
        return value.decode("latin1")
    return value if type(value) is str else ""


_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32
_MOST_LABEL = 1 << 31


def read_cifar(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads pickled batches one after the other; returns images (n, 3, 32, 32) and (fine) labels (n,)."""
    parts = [_read_batch(path) for path in paths]
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def _read_batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    batch = read_pickle(path)
    held = batch if isinstance(batch, dict) else {}
    data, labels = held.get(b"data"), held.get(b"fine_labels", held.get(b"labels"))
    if labels is None or not _is_labels(labels) or not isinstance(data, np.ndarray) or data.dtype != np.uint8:
        raise _unlike(path, f"it has {sorted(map(str, held))} of other types" if held else "it has none of them")
    if len(labels) == 0 or data.shape != (len(labels), _PIXELS):
        raise _unlike(path, f"they are {data.shape} and ({len(labels)},)")
    return data.reshape(-1, *_SHAPE), np.array(labels, np.int64)


def _is_labels(labels: Any) -> bool:
    """Tells whether `labels` is a flat list of class numbers, without following what else it may hold."""
    return isinstance(labels, list) and all(type(label) is int and 0 <= label < _MOST_LABEL for label in labels)


def _unlike(path: Path, found: str) -> DamagedFileError:
    return DamagedFileError(
        f"{path} should hold 'data' (n, {_PIXELS}) of bytes and a list 'labels' or 'fine_labels' (n,); {found}. "
        "Get the file anew."
    )
