"""Intervals in which a target lies with a given probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cndpm.estimators.arrays import admit_number


def normal_interval(mean: NDArray[np.float64], deviation: NDArray[np.float64], coverage: float) -> NDArray[np.float64]:
    """Returns the bounds (..., 2) between which normal variables lie with probability `coverage`, between 0 and 1.

    Example:
        >>> normal_interval(np.array([0.0]), np.array([1.0]), 0.95).round(2).tolist()
        [[-1.96, 1.96]]
    """
    if not 0 < admit_number(coverage, "coverage") < 1:
        raise ValueError(f"coverage is a probability between 0 and 1; got {coverage}. Take 0.9 for nine in ten.")
    away = ndtri(0.5 + coverage / 2) * deviation
    return np.stack([mean - away, mean + away], axis=-1)
