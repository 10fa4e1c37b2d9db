"""The bytes of a state file: a header in JSON, the tensors, and the SHA-256 of all that comes before it.

The layout is that of safetensors, so that its tools can look inside: eight bytes with the length of the header, the
header (for every tensor its type, shape and place, and texts by name as ``__metadata__``), then the tensors without a
gap. The last of them, ``$sha256``, is the checksum. Whatever length or place the header claims is compared with the
bytes that are there before anything is read or set aside, and nothing is parsed by compiled code but the JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from typing import Any, cast

import torch
from torch import Tensor

from cndpm.errors import CNDPMError

__all__ = ["StateError"]

_CHECKSUM = "$sha256"
_N_CHECKSUM = 32
_SMALL_HEADER = 1 << 22  # bytes; larger ones are at most a quarter of their file
_PER_NODE = 8  # bytes of a header for each dictionary or list in it, of which a made-up one has as many as it can
_FEW = 10_000  # tensors, or dictionaries and lists, that a file of any size may have
_PER_TENSOR = 256  # bytes of tensors for each of them beyond
_MOST_DIMENSIONS = 16
_MOST_SIDE = 1 << 40
_CHUNK = 1 << 20
_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


class StateError(CNDPMError, ValueError):
    """Says why a file, or what it holds, is not a state that this version can load, on one line whatever it holds."""

    def __str__(self) -> str:
        return super().__str__().replace("\n", "\\n")


@dataclass(frozen=True)
class Container:
    """The content of a file."""

    texts: dict[str, str]  # by name
    tensors: dict[str, Tensor]  # by name, on the host, each in memory of its own


def container_pieces(texts: dict[str, str], tensors: dict[str, Tensor]) -> Iterator[bytes | memoryview]:
    """Yields the bytes of a file, piece by piece; tensors are not copied."""
    header: dict[str, Any] = {"__metadata__": texts}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _type_name(name, tensor), "shape": list(tensor.shape), "data_offsets": [begin, end]}
    header[_CHECKSUM] = {"dtype": "U8", "shape": [_N_CHECKSUM], "data_offsets": [end, end + _N_CHECKSUM]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    _admit_header(text, 8 + len(text) + end + _N_CHECKSUM)
    checksum = hashlib.sha256()
    pieces: Iterator[bytes | memoryview] = chain(
        (len(text).to_bytes(8, "little"), text), map(_bytes_of, tensors.values())
    )
    for piece in pieces:
        checksum.update(piece)
        yield piece
    yield checksum.digest()


def has_right_checksum(file: BufferedReader, size: int) -> bool:
    """Tells whether the last bytes of a file are the checksum of those before; nothing in it is looked at."""
    checksum, rest = hashlib.sha256(), size - _N_CHECKSUM
    while rest > 0 and (piece := file.read(min(_CHUNK, rest))):
        checksum.update(piece)
        rest -= len(piece)
    is_right = rest == 0 and checksum.digest() == file.read(_N_CHECKSUM)
    file.seek(0)
    return is_right


def read_container(file: BufferedReader, size: int, *, is_whole: bool = True) -> Container:
    """Reads texts, and tensors of a whole file, or raises StateError; the checksum is not looked at."""
    texts, header, n_bytes = read_texts(file, size)
    if len(header) > _FEW + n_bytes // _PER_TENSOR:
        raise StateError(f"it has {len(header)} tensors, more than {n_bytes} bytes are for")
    places = [_place(name, entry) for name, entry in header.items()]
    places.sort(key=lambda place: (place.begin, place.end))
    end = 0
    for place in places:
        if place.begin != end:
            raise StateError(f"the bytes of {place.name[:80]!r} begin at {place.begin}, not at {end}")
        end = place.end
    if end != n_bytes:
        raise StateError(f"it has {n_bytes} bytes of tensors where its header speaks of {end}")
    tensors = {place.name: _read_tensor(file, place) for place in places} if is_whole else {}
    tensors.pop(_CHECKSUM, None)
    return Container(texts, tensors)


def read_texts(file: BufferedReader, size: int) -> tuple[dict[str, str], dict[str, Any], int]:
    """Reads the header alone: texts by name, what it says of tensors by name, and how many bytes are theirs."""
    n_header = int.from_bytes(file.read(8), "little")
    if not 2 <= n_header <= min(size - 8, max(_SMALL_HEADER, size // 4)):
        raise StateError(f"it has {size} bytes and says that its header has {n_header}")
    text = file.read(n_header)
    _admit_header(text, size)
    header = _parse(text)
    texts = header.pop("__metadata__", {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise StateError("its metadata are not texts by name")
    return texts, header, size - 8 - n_header


@dataclass(frozen=True)
class _Place:
    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


def _admit_header(text: bytes, size: int) -> None:
    """Refuses a header from which far more memory would be made than its file takes."""
    if len(text) > max(_SMALL_HEADER, size // 4):
        raise StateError(f"its header has {len(text)} of {size} bytes; numbers belong into tensors")
    n_nodes = text.count(b"{") + text.count(b"[")
    if n_nodes > _FEW + len(text) // _PER_NODE:
        raise StateError(f"its header of {len(text)} bytes has {n_nodes} dictionaries and lists")


def _parse(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StateError(f"its header is not JSON: {str(error)[:200]}") from None
    if not isinstance(header, dict):
        raise StateError("its header is no JSON object")
    return header


def _place(name: str, entry: Any) -> _Place:
    """Returns type, shape and place of a tensor, once they agree with one another."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise StateError(f"its header does not describe {name[:80]!r} by dtype, shape and data_offsets")
    dtype = _TYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise StateError(f"{name[:80]!r} is of type {str(entry['dtype'])[:20]!r}; known are {', '.join(_TYPES)}")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not (_are_sizes(shape) and _are_sizes(offsets) and len(offsets) == 2 and len(shape) <= _MOST_DIMENSIONS):
        raise StateError(f"{name[:80]!r} has a shape or a place that cannot be: {str(shape)[:80]}, {str(offsets)[:80]}")
    begin, end = offsets
    if end - begin != math.prod(shape) * dtype.itemsize or math.prod(max(1, side) for side in shape) > _MOST_SIDE:
        raise StateError(f"{name[:80]!r} of shape {str(shape)[:80]} does not have {end - begin} bytes")
    return _Place(name, dtype, tuple(shape), begin, end)


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v <= _MOST_SIDE for v in values)


def _read_tensor(file: BufferedReader, place: _Place) -> Tensor:
    # In memory of torch, which is aligned: what is computed of it must not depend on where a file has it.
    tensor = torch.empty(place.shape, dtype=place.dtype)
    view = memoryview(cast(bytes, tensor.view(-1).view(torch.uint8).numpy()))
    if file.readinto(view) != len(view):
        raise StateError(f"it ends within {place.name[:80]!r}")
    if place.dtype is torch.bool and len(view) and int(tensor.view(torch.uint8).max()) > 1:
        raise StateError(f"{place.name[:80]!r} is of type BOOL and holds other values than 0 and 1")
    return tensor


def _bytes_of(tensor: Tensor) -> memoryview:
    """Returns the bytes of a contiguous tensor on the host, without a copy."""
    flat = tensor.reshape(-1)
    if len(flat) <= 1:  # its stride may be anything
        flat = torch.empty(len(flat), dtype=flat.dtype).copy_(flat)
    return memoryview(cast(bytes, flat.view(torch.uint8).numpy()))


def _type_name(name: str, tensor: Tensor) -> str:
    if tensor.dtype not in _NAMES:
        raise TypeError(f"a state holds tensors of {', '.join(_NAMES.values())}; got {tensor.dtype} at {name!r}")
    return _NAMES[tensor.dtype]
