"""Pickled arrays without pickled code.

CIFAR10 and CIFAR100 are published as pickles, a format that can name any function and have it called. The unpickler
here builds plain containers by itself and looks up only the few names that a numpy array needs; a file that asks for
anything else is refused before it is run.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["RefusedPickleError", "read_pickle"]


class RefusedPickleError(ValueError):
    """A pickle asks for more than arrays and plain containers, or is no pickle; the message says which."""


def _encode(text: str, encoding: str) -> bytes:
    """What ``codecs.encode`` does for the byte strings of pickles written for Python 2; any other codec is refused."""
    if encoding != "latin1":
        raise RefusedPickleError(f"the pickle asks for the codec {encoding!r}; only 'latin1' is admitted")
    return text.encode("latin1")


def _empty_bytes() -> bytes:
    """What an empty byte string is written as for Python 2; it takes no argument here."""
    return b""


# numpy 1 and 2 pickle arrays through these names; the module's own path changed between them.
_reconstruct = np.ndarray(0).__reduce__()[0]
_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _empty_bytes,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise RefusedPickleError(
                f"the pickle asks for {module}.{name}; only arrays and plain containers are admitted"
            ) from None


def read_pickle(path: Path) -> Any:
    """Reads a pickle of arrays, lists, dictionaries, numbers and strings (Python 2's become bytes).

    Raises:
        RefusedPickleError: The file would call or import something else, holds objects, or is damaged.
    """
    try:
        return _ArrayUnpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except RefusedPickleError as error:
        raise RefusedPickleError(f"{path} is refused: {error}") from None
    except Exception as error:  # a damaged pickle raises whatever its garbage leads to
        raise RefusedPickleError(f"{path} is not a readable pickle: {error}") from error
