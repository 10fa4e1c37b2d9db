"""Intervals in which a target lies with a given probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cndpm.estimators.arrays import admit_number

__all__ = ["normal_interval", "normal_width"]


def normal_width(coverage: float) -> float:
    """Returns how many deviations around the mean hold a share of a normal distribution.

    Args:
        coverage: The share, between 0 and 1.

    Raises:
        ValueError: It is not between 0 and 1.

    Example:
        >>> round(normal_width(0.95), 2)
        1.96
    """
    if not 0 < admit_number(coverage, "coverage") < 1:
        raise ValueError(f"coverage is a probability between 0 and 1; got {coverage}. Take 0.9 for nine in ten.")
    return float(ndtri(0.5 + coverage / 2))


def normal_interval(mean: NDArray[np.float64], deviation: NDArray[np.float64], coverage: float) -> NDArray[np.float64]:
    """Returns lower and upper bounds, (n, 2), or (n, n_outputs, 2).

    Args:
        mean: (n,) or (n, n_outputs).
        deviation: As the mean.
        coverage: Share of targets that lie between the bounds.
    """
    away = normal_width(coverage) * deviation
    return np.stack([mean - away, mean + away], axis=-1)
