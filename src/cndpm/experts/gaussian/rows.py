"""Feature rows that remember what was computed of them.

Routing a batch, learning it and predicting it all need the same features and what follows from them. They are computed
once; where a whole chunk of a stream is announced in advance (its features are fixed, so nothing leaks), once for the
chunk, which is where the speed is: a triangular solve for ten rows reads the whole factor; and where inputs are asked
about again and again, as test sets are, once for all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from torch import Tensor

__all__ = ["FeatureRows", "RowCache"]

_N_LATEST = 2
"""Tensors remembered without being announced or kept: the samples asked about and the memory."""


class _Sliceable(Protocol):
    def __getitem__(self, rows: slice, /) -> Any: ...


Derived = TypeVar("Derived", bound=_Sliceable)


class FeatureRows:
    """Features z (B, d) and the latest quantity derived of them, row by row."""

    def __init__(self, z: Tensor, *, parent: FeatureRows | None = None, rows: slice = slice(None)) -> None:
        self.z = z
        self._parent, self._rows = parent, rows
        self._key: object = None
        self._derived: Any = None

    @property
    def whole(self) -> FeatureRows:
        """The rows that these are cut from; themselves if they are not."""
        return self if self._parent is None else self._parent

    @property
    def start(self) -> int:
        """Where these begin in the whole."""
        return self._rows.start or 0

    def part(self, rows: slice) -> FeatureRows:
        """Some of the rows; what is derived for them is derived for all at once."""
        return FeatureRows(self.z[rows], parent=self, rows=rows)

    def derive(self, key: object, function: Callable[[Tensor], Derived]) -> Derived:
        """function(z), computed once as long as the same `key` asks; one entry a row, cut by slices."""
        if self._derived is None or self._key is not key:
            whole = self._parent
            self._derived = function(self.z) if whole is None else whole.derive(key, function)[self._rows]
            self._key = key
        derived: Derived = self._derived
        return derived


class _Chunk:
    """A tensor of samples and its rows, computed when they are first asked for."""

    def __init__(self, source: Tensor) -> None:
        self.source, self.version = source, source._version
        self.rows: FeatureRows | None = None

    def place(self, x: Tensor) -> slice | None:
        """Where x lies in the chunk; None where it is no slice of it or the chunk has changed since.

        The chunk is alive, so no other tensor can have taken its storage; views share its version counter.
        """
        chunk = self.source
        if x._version != self.version or x.dtype != chunk.dtype or _storage(x) != _storage(chunk):
            return None
        if x.shape[1:] != chunk.shape[1:] or x.stride() != chunk.stride() or not chunk.is_contiguous():
            return None
        offset, remainder = divmod(int(x.storage_offset()) - int(chunk.storage_offset()), max(1, chunk[0].numel()))
        inside = remainder == 0 and 0 <= offset <= len(chunk) - len(x)
        return slice(offset, offset + len(x)) if inside else None


class RowCache:
    """The rows of tensors asked for before, recognised by identity and version, never by content.

    Args:
        function: Computes features (B, d) of samples (B, ...).
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function
        self._announced: list[_Chunk] = []
        self._following: Tensor | None = None
        self._kept: dict[int, list[_Chunk]] = {}
        self._latest: OrderedDict[int, tuple[Tensor, int, FeatureRows]] = OrderedDict()

    def announce(self, chunk: Tensor) -> None:
        """A chunk whose views, such as chunk[10:20], will be asked for; it takes the place of the one before."""
        self._announced, self._following = [_Chunk(chunk)], None

    def keep(self, x: Tensor) -> None:
        """Samples that will be asked about again: their rows are kept from the first time on."""
        known = self._kept.setdefault(_storage(x), [])
        if all(chunk.place(x) is None for chunk in known):
            known.append(_Chunk(x))

    def look_ahead(self, x: Tensor, n: int) -> None:
        """Announces x with the samples around it, where x is a slice of a larger tensor of samples; else x alone.

        What is computed together is cut at multiples of `n` from the larger tensor's beginning, wherever one starts to
        read it: the same slice gives the same bits.
        """
        place, whole = self._place(x), x._base
        if place is not None and place[0] not in self._announced[1:]:
            return
        if whole is None or whole.shape[1:] != x.shape[1:] or not whole.is_contiguous():
            whole = x
        first = (int(x.storage_offset()) - int(whole.storage_offset())) // max(1, x[0].numel())
        begin = first - first % n
        if place is None:
            self.announce(whole[begin : max(begin + n, first + len(x))])
        else:
            self._announced = [place[0]]
        self._following = whole[begin + n : begin + 2 * n] if begin + n < len(whole) else None

    def go_ahead(self) -> FeatureRows | None:
        """The rows of the samples that follow those announced, once; None where there are none.

        A GPU computes them while the host is busy with what was announced.
        """
        if self._following is None:
            return None
        chunk, self._following = _Chunk(self._following), None
        chunk.rows = FeatureRows(self._function(chunk.source))
        self._announced.append(chunk)
        return chunk.rows

    def rows(self, x: Tensor) -> FeatureRows:
        """Rows of x: of the same tensor if it was asked for lately, of the chunk it is a view of, or computed."""
        known = self._latest.get(id(x))
        if known is not None and known[0] is x and known[1] == x._version:
            self._latest.move_to_end(id(x))
            return known[2]
        rows = self._from_chunk(x) or FeatureRows(self._function(x))
        self._latest[id(x)] = (x, x._version, rows)
        if len(self._latest) > _N_LATEST:
            self._latest.popitem(last=False)
        return rows

    def clear(self) -> None:
        """Forgets all rows; what is to be kept is computed again."""
        self._announced, self._following = [], None
        self._latest.clear()
        self._kept = {key: [_Chunk(chunk.source) for chunk in chunks] for key, chunks in self._kept.items()}

    def _place(self, x: Tensor) -> tuple[_Chunk, slice] | None:
        for chunk in (*self._announced, *self._kept.get(_storage(x), ())):
            rows = chunk.place(x)
            if rows is not None:
                return chunk, rows
        return None

    def _from_chunk(self, x: Tensor) -> FeatureRows | None:
        place = self._place(x)
        if place is None:
            return None
        chunk, rows = place
        if chunk.rows is None:
            chunk.rows = FeatureRows(self._function(chunk.source))
        return chunk.rows.part(rows)


def _storage(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()
