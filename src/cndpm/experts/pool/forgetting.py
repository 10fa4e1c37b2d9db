"""Rates of forgetting: the prior that few samples need, and when a solution is to be renewed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "fading_weights", "prior_strength", "renewal_interval"]

Floats = NDArray[np.float64]
"""An array of double precision."""


def fading_weights(keeps: Floats, n: int) -> tuple[Floats, Floats]:
    """Returns what a batch leaves of older samples, (M,), and the weights of its own, (M, n).

    Args:
        keeps: What is left of a sample after the next one, for each of M members, (M,).
        n: Samples of the batch.

    Example:
        >>> fading_weights(np.array([0.5]), 3)
        (array([0.125]), array([[0.25, 0.5 , 1.  ]]))
    """
    return keeps**n, keeps[:, None] ** np.arange(n - 1, -1, -1)


def prior_strength(n_features: int) -> float:
    """Returns how many samples the prior of a covariance counts for: a tenth of the features, at least five."""
    return max(5.0, n_features / 10)


def renewal_interval(n: float, n_features: int) -> int:
    """Returns after how many samples a solution is renewed: a twentieth of what it rests on, or of its features.

    Not before five have come, so that rows which come one by one cost little more than in batches.

    Args:
        n: Samples that it rests on.
        n_features: Numbers solved for; renewing costs the cube of them, a sample the square.

    Example:
        >>> renewal_interval(1000.0, 10), renewal_interval(30.0, 200)
        (50, 10)
    """
    return int(max(n, n_features, 100) // 20)
