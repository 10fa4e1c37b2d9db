"""Batches with named columns: those of Hugging Face datasets, and dictionaries that loaders of torch make.

No package is imported for it: a dataset is known by its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from cndpm.names import UnknownNameError

_LABELS = ("label", "labels", "target", "y")
"""Names that a column of labels has by habit, the first of them first."""


def is_dataset(source: Any) -> bool:
    """Returns whether a source is a dataset of Hugging Face: rows with named columns, to be read in batches."""
    return callable(getattr(source, "iter", None)) and callable(getattr(source, "with_format", None))


class NamedBatches:
    """Turns dictionaries of columns into pairs (x, y)."""

    def __init__(self, x_column: str | None, y_column: str | None) -> None:
        self._x, self._y = x_column, y_column

    def pair(self, batch: Mapping[str, Any]) -> Any:
        """Returns (x, y), or x alone where no column holds labels."""
        x, y = self._names(list(batch))
        inputs = _channels_first(batch[x]) if isinstance(batch[x], np.ndarray) else batch[x]
        return inputs if y is None else (inputs, batch[y])

    def opened(self, dataset: Any, batch_size: int) -> tuple[Callable[[int], Iterator[Any]], dict[str, Any]]:
        """Returns a function that reads a dataset from batch `start` on, and `n_classes` and `n_batches` if known."""
        features = dict(getattr(dataset, "features", None) or {})
        y = self._names(list(features))[1] if features else self._y
        rows = dataset.with_format("numpy")
        can_skip = hasattr(dataset, "__len__") and callable(getattr(dataset, "select", None))

        def read(start: int) -> Iterator[Any]:
            first = min(start * batch_size, len(dataset)) if can_skip else 0
            part = rows.select(range(first, len(dataset))) if can_skip else rows.skip(start * batch_size)
            return (self.pair(batch) for batch in part.iter(batch_size=batch_size))

        known = {"n_batches": -(-len(dataset) // batch_size)} if can_skip else {}
        n_classes = getattr(features.get(y), "num_classes", None) if y is not None else None
        return read, known | ({} if n_classes is None else {"n_classes": n_classes})

    def _names(self, columns: list[str]) -> tuple[str, str | None]:
        for name in (self._x, self._y):
            if name is not None and name not in columns:
                raise UnknownNameError("column", name, columns)
        y = self._y or next((name for name in _LABELS if name in columns and name != self._x), None)
        left = [name for name in columns if name != y]
        if self._x is None and len(left) != 1:
            raise ValueError(f"which column holds the inputs? Say x_column=...; there are {', '.join(left) or 'none'}")
        return self._x or left[0], y


def _channels_first(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns images of bytes (n, height, width) or (n, height, width, 3) as (n, channels, height, width)."""
    if x.dtype != np.uint8 or x.ndim not in (3, 4):
        return x
    return x[:, None] if x.ndim == 3 else np.ascontiguousarray(np.moveaxis(x, -1, 1)) if x.shape[-1] in (1, 3) else x
