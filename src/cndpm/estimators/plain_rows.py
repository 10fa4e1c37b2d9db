"""Inputs of estimators as rows, and the short way for those that need no conversion.

scikit-learn's validation takes a third of a millisecond a call, whatever the number of rows: as long as learning one.
Arrays of numbers in which there is nothing to find fault with pass by; everything else goes the long way, where it is
converted, or refused with scikit-learn's words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.estimators.arrays import as_array
from cndpm.model.inputs import LARGEST

CHANNELS = (1, 3, 4)
"""Of images: grey, colours, colours and opacity."""

_FEW = 20
"""Labels up to which scikit-learn draws no conclusions from their number; it warns where half of more are different."""


def flat_rows(X: Any, input_shape: tuple[int, ...] | None) -> Any:
    """Turns tensors into arrays and images into rows; tables (pandas) stay as they are, for their column names.

    Images of one channel may come without it.
    """
    X = as_array(X, "X")
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) > 1:
        X = np.asarray(X)
    if isinstance(X, np.ndarray) and X.ndim > 2:
        if input_shape is None or tuple(input_shape) not in (X.shape[1:], (1, *X.shape[1:])):
            raise ValueError(_unshaped(X.shape, input_shape))
        return X.reshape(len(X), -1)
    return X


def _unshaped(shape: tuple[int, ...], input_shape: tuple[int, ...] | None) -> str:
    """Words the error of samples that come in a shape that was not announced."""
    if len(shape) == 4 and shape[3] in CHANNELS and shape[1] not in CHANNELS:
        turned = (shape[3], *shape[1:3])
        return f"X has shape {shape}: channels last. Give X.transpose(0, 3, 1, 2), and input_shape={turned}."
    if shape == input_shape:
        return f"X has shape {shape}, as one sample; give X[None]"
    announced = (1, *shape[1:]) if len(shape) == 3 else shape[1:]
    rows = "rows (n, n_features)" if input_shape is None else f"rows (n, n_features) or (n, *{input_shape})"
    return (
        f"X has shape {shape}, expected {rows}; input_shape is {input_shape}. "
        f"Set input_shape={announced} for such samples, or flatten them to rows."
    )


def plain_rows(X: Any, n_features: int, input_shape: tuple[int, ...] | None = None) -> NDArray[np.float32] | None:
    """Returns X as float32, (n, n_features), if it is a plain array of numbers that can be learned; None otherwise."""
    if type(X) is not np.ndarray or X.dtype.kind not in "fiu" or not len(X):
        return None
    if input_shape is not None and X.shape[1:] == tuple(input_shape):
        X = X.reshape(len(X), -1)
    if X.ndim != 2 or X.shape[1] != n_features:
        return None
    with np.errstate(over="ignore"):
        rows = X.astype(np.float32)
    # Neither a NaN nor an infinite number passes.
    return rows if np.abs(rows).max(initial=0.0) <= LARGEST else None


def plain_labels(y: Any) -> NDArray[Any] | None:
    """Returns y if it is a plain array of whole numbers, truths or words, (n,), most of them repeated; else None."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "iubU" or not len(y):
        return None
    return y if len(y) <= _FEW or len(set(y.tolist())) <= len(y) / 2 else None
