"""Feature rows that remember what was computed of them.

Routing a batch, learning it and predicting it all need the same features and the same whitened features. They are
computed once; and where a whole chunk of a stream is announced in advance (its features are fixed, so nothing leaks),
once for the chunk, which is where the speed is: a triangular solve for ten rows reads the whole factor.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["FeatureRows", "RowCache"]


class FeatureRows:
    """Features z (B, d) and the latest quantity derived of them, row by row."""

    def __init__(self, z: Tensor, *, parent: FeatureRows | None = None, rows: slice | None = None) -> None:
        self.z = z
        self._parent, self._rows = parent, rows
        self._key: object = None
        self._derived: Tensor | None = None

    def part(self, rows: slice) -> FeatureRows:
        """Some of the rows; what is derived for them is derived for all at once."""
        return FeatureRows(self.z[rows], parent=self, rows=rows)

    def derive(self, key: object, function: Callable[[Tensor], Tensor]) -> Tensor:
        """function(z), computed once as long as the same `key` asks."""
        if self._parent is not None and self._rows is not None:
            return self._parent.derive(key, function)[self._rows]
        if self._derived is None or self._key is not key:
            self._derived, self._key = function(self.z), key
        return self._derived


class RowCache:
    """The rows of the tensors asked for last, recognised by identity and version, never by content.

    Args:
        function: Computes features (B, d) of samples (B, ...).
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function
        self._source: Tensor | None = None
        self._version = -1
        self._rows: FeatureRows | None = None
        self._chunk: Tensor | None = None
        self._chunk_version = -1
        self._chunk_rows: FeatureRows | None = None

    def announce(self, chunk: Tensor) -> None:
        """Computes the rows of a chunk whose views, such as chunk[10:20], will be asked for."""
        self._chunk, self._chunk_version = chunk, chunk._version
        self._chunk_rows = FeatureRows(self._function(chunk))

    def look_ahead(self, x: Tensor, n: int) -> None:
        """Computes x's rows with those of the samples around it, where x is a slice of a larger tensor of samples.

        What is computed together is cut at multiples of `n` from the larger tensor's beginning, wherever one starts to
        read it: the same slice gives the same bits.
        """
        whole = x._base
        if whole is None or whole.shape[1:] != x.shape[1:] or not whole.is_contiguous() or self._from_chunk(x):
            return
        first = (int(x.storage_offset()) - int(whole.storage_offset())) // max(1, x[0].numel())
        begin = first - first % n
        self.announce(whole[begin : max(begin + n, first + len(x))])

    def rows(self, x: Tensor) -> FeatureRows:
        """Rows of x, from the chunk if x is a view of it, from the last call if x is the same tensor."""
        if self._rows is None or x is not self._source or x._version != self._version:
            self._source, self._version = x, x._version
            self._rows = self._from_chunk(x) or FeatureRows(self._function(x))
        return self._rows

    def clear(self) -> None:
        """Forgets everything."""
        self._source = self._rows = self._chunk = self._chunk_rows = None

    def _from_chunk(self, x: Tensor) -> FeatureRows | None:
        chunk = self._chunk
        if chunk is None or self._chunk_rows is None or x._version != self._chunk_version:
            return None
        # The chunk is alive, so no other tensor can have taken its storage; views share its version counter.
        if x.untyped_storage().data_ptr() != chunk.untyped_storage().data_ptr() or x.dtype != chunk.dtype:
            return None
        size = chunk[0].numel()
        if x.shape[1:] != chunk.shape[1:] or x.stride() != chunk.stride() or not chunk.is_contiguous():
            return None
        offset, remainder = divmod(int(x.storage_offset()) - int(chunk.storage_offset()), size)
        inside = remainder == 0 and 0 <= offset <= len(chunk) - len(x)
        return None if not inside else self._chunk_rows.part(slice(offset, offset + len(x)))


def one_hot_weights(components: Tensor, weights: Tensor, n_components: int) -> Tensor:
    """Weights (B, J) from component indices (B, K), -1 for none, and weights (B, K)."""
    result = weights.new_zeros(len(weights), n_components + 1)
    result.scatter_add_(1, torch.where(components < 0, n_components, components), weights)
    return result[:, :-1]
