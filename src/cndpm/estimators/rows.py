"""Inputs of estimators as rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

__all__ = ["flat_rows"]


def flat_rows(X: Any, input_shape: tuple[int, ...] | None) -> Any:
    """Turns tensors into arrays and images into rows; tables (pandas) stay as they are, for their column names.

    Args:
        X: (n, n_features), or (n, *input_shape).
        input_shape: Shape of one sample where it is not a row.
    """
    if isinstance(X, Tensor):
        X = X.detach().cpu().numpy()
    if input_shape is not None and isinstance(X, np.ndarray) and X.shape[1:] == tuple(input_shape):
        return X.reshape(len(X), -1)
    return X
