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


_N_TRACKS = 3
"""Tensors that are read in turn: a stream's block, what a memory gives back and what was held out of it."""


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


class _Track:
    """Chunks of one tensor that is read from its beginning to its end: where the reader is, and perhaps the next one.

    Attributes:
        chunks: One or two.
        following: The samples behind the first chunk, until they are computed ahead.
    """

    def __init__(self, chunk: _Chunk) -> None:
        self.chunks = [chunk]
        self.following: Tensor | None = None

    def place(self, x: Tensor) -> tuple[_Chunk, slice] | None:
        """The chunk that x is a slice of, and where."""
        for chunk in self.chunks:
            rows = chunk.place(x)
            if rows is not None:
                return chunk, rows
        return None


class RowCache:
    """The rows of tensors asked for before, recognised by identity and version, never by content.

    Args:
        function: Computes features (B, d) of samples (B, ...).
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function
        self._tracks: list[_Track] = []
        self._kept: dict[int, list[_Chunk]] = {}
        self._latest: OrderedDict[int, tuple[Tensor, int, FeatureRows]] = OrderedDict()

    def announce(self, chunk: Tensor) -> None:
        """A chunk whose views, such as chunk[10:20], will be asked for."""
        self._follow(_Track(_Chunk(chunk)))

    def keep(self, x: Tensor) -> None:
        """Samples that will be asked about again: their rows are kept from the first time on."""
        known = self._kept.setdefault(_storage(x), [])
        if all(chunk.place(x) is None for chunk in known):
            known.append(_Chunk(x))

    def look_ahead(self, x: Tensor, n: int) -> None:
        """Announces x with the samples around it, where x is a slice of a larger tensor of samples; else x alone.

        What is computed together is cut at multiples of `n` from the larger tensor's beginning, wherever one starts to
        read it: the same slice gives the same bits. Some tensors may be read in turn, as a stream and a memory are.
        """
        whole = x._base
        if whole is None or whole.shape[1:] != x.shape[1:] or not whole.is_contiguous():
            whole = x
        track = next((track for track in self._tracks if track.place(x) is not None), None)
        if track is None and self._place(x) is not None:
            return
        first = (int(x.storage_offset()) - int(whole.storage_offset())) // max(1, x[0].numel())
        begin = first - first % n
        track = track or _Track(_Chunk(whole[begin : max(begin + n, first + len(x))]))
        self._follow(track)
        if track.chunks[0].place(x) is None:
            del track.chunks[0]
        if len(track.chunks) == 1:
            following = whole[begin + n : begin + 2 * n]
            track.following = following if len(following) and track.place(following) is None else None

    def select(self, x: Tensor, chosen: Tensor) -> Tensor:
        """x[chosen] for a mask (B,); where rows of x are known, as those of a memory are, its own are known too."""
        part, known = x[chosen.to(x.device)], self._latest.get(id(x))
        if known is not None and known[0] is x and known[1] == x._version:
            chunk, z = _Chunk(part), known[2].z
            chunk.rows = FeatureRows(z[chosen.to(z.device)])
            self._follow(_Track(chunk))
        return part

    def go_ahead(self) -> FeatureRows | None:
        """The rows of the samples that follow those announced last, once; None where there are none.

        A GPU computes them while the host is busy with what was announced.
        """
        track = self._tracks[0] if self._tracks else None
        if track is None or track.following is None:
            return None
        chunk, track.following = _Chunk(track.following), None
        chunk.rows = FeatureRows(self._function(chunk.source))
        track.chunks.append(chunk)
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
        self._tracks = []
        self._latest.clear()
        self._kept = {key: [_Chunk(chunk.source) for chunk in chunks] for key, chunks in self._kept.items()}

    def _follow(self, track: _Track) -> None:
        """Puts a track first, and drops the one that has not been followed for long."""
        self._tracks = [track, *(other for other in self._tracks if other is not track)][:_N_TRACKS]

    def _place(self, x: Tensor) -> tuple[_Chunk, slice] | None:
        for chunk in (*(c for track in self._tracks for c in track.chunks), *self._kept.get(_storage(x), ())):
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
