"""Class labels of any hashable type, discovered as they arrive, against the indices that learners use."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LabelCodec"]


class LabelCodec:
    """Numbers labels in the order of their first arrival.

    Args:
        labels: Labels known up front.
        closed: Whether these are all there may ever be.

    Example:
        >>> codec = LabelCodec()
        >>> codec.encode(["cat", "dog", "cat"], learn=True).tolist()
        [0, 1, 0]
    """

    def __init__(self, labels: Iterable[Hashable] = (), *, closed: bool = False) -> None:
        self.labels: list[Hashable] = []
        self.closed = closed
        self._index: dict[Hashable, int] = {}
        for label in labels:
            self._add(_plain(label))

    def __len__(self) -> int:
        return len(self.labels)

    def encode(self, y: Sequence[Any] | NDArray[Any], *, learn: bool) -> NDArray[np.int64]:
        """Returns the indices of labels, (n,).

        Args:
            y: The labels, (n,).
            learn: Whether unknown ones are added; otherwise they are an error.
        """
        values = [_plain(label) for label in y]
        unknown = dict.fromkeys(value for value in values if value not in self._index)
        if unknown and (self.closed or not learn):
            known = ", ".join(map(repr, self.labels)) or "none"
            raise ValueError(f"y contains labels that are not among the known classes: {list(unknown)}; known: {known}")
        for label in unknown:
            self._add(label)
        return np.array([self._index[value] for value in values], dtype=np.int64)

    def find(self, label: Any) -> int | None:
        """Returns the index of a label that was met before, None for others."""
        return self._index.get(_plain(label))

    def order(self) -> NDArray[np.int64]:
        """Returns the indices in sorted order of their labels; in order of arrival where labels cannot be compared."""
        try:
            return np.array(sorted(range(len(self)), key=lambda i: self.labels[i]), dtype=np.int64)  # type: ignore[arg-type,return-value]
        except TypeError:
            return np.arange(len(self), dtype=np.int64)

    def classes(self) -> NDArray[Any]:
        """Returns the labels in the order of :meth:`order`, as an array of the narrowest type that holds them."""
        ordered = [self.labels[i] for i in self.order()]
        if len({type(label) for label in ordered}) == 1 and isinstance(ordered[0], str | int | float | bool):
            return np.array(ordered)
        array = np.empty(len(ordered), dtype=object)
        array[:] = ordered
        return array

    def _add(self, label: Hashable) -> None:
        if label not in self._index:
            self._index[label] = len(self.labels)
            self.labels.append(label)


def _plain(label: Any) -> Any:
    """Returns a label as a plain Python value; numpy scalars would not compare or save alike."""
    if isinstance(label, np.generic):
        label = label.item()
    try:
        hash(label)
    except TypeError:
        raise TypeError(f"labels must be hashable; got a {type(label).__name__}: {label!r}") from None
    if isinstance(label, float) and not np.isfinite(label):
        raise ValueError(f"labels must not be NaN or infinite; got {label!r}")
    return label
