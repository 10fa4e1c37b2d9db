r"""Stacking: exponents of a log-linear pool that are learned by Newton steps on the log loss.

.. math::
    p(y \mid x) \propto \exp \sum_m \beta_m \log p_m(y \mid x)

The log loss is convex in β, its gradient the difference between what happened and what was expected, its curvature the
covariance of the members' log-probabilities under the pool. Older curvature fades, and a ridge keeps β near where it is
where evidence is lacking.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cndpm.mixture.time import Floats, log_normalise

__all__ = ["newton_step", "stack"]


def stack(log_members: Floats, exponents: Floats) -> Floats:
    """Returns the log-probabilities of the pool, (B, C).

    Args:
        log_members: By member, (M, B, C).
        exponents: β, (M,).

    Example:
        >>> even, sure = [[0.5, 0.5]], [[0.8, 0.2]]
        >>> np.exp(stack(np.log([even, sure]), np.array([0.0, 1.0])))
        array([[0.8, 0.2]])
    """
    pooled = exponents[None].dot(log_members.reshape(len(exponents), -1))
    return log_normalise(pooled.reshape(log_members.shape[1:]))


def newton_step(
    exponents: Floats, curvature: Floats, log_members: Floats, y: NDArray[np.int64], *, keep: float, ridge: float
) -> tuple[Floats, Floats]:
    """Returns exponents and curvature after a batch.

    Args:
        exponents: β, (M,).
        curvature: Of the faded log loss, (M, M).
        log_members: By member, (M, B, C).
        y: Class indices, (B,).
        keep: What is left of older curvature after one sample.
        ridge: Curvature that is always there.

    Example:
        >>> members, start = np.log([[[0.5, 0.5]], [[0.8, 0.2]]]), np.array([0.5, 0.5])
        >>> after, _ = newton_step(start, np.eye(2), members, np.array([0]), keep=0.99, ridge=1.0)
        >>> bool(after[1] > 0.5)  # who was right gains
        True
    """
    n = len(y)
    proba = np.exp(stack(log_members, exponents))
    expected = (log_members * proba).sum(axis=2)  # (M, B)
    gradient = (log_members[:, np.arange(n), y] - expected).sum(axis=1)
    rows = log_members.reshape(len(exponents), -1)
    second = (rows * proba.ravel()) @ rows.T - expected @ expected.T
    left = keep**n
    curvature = left * curvature + second
    curvature.flat[:: len(curvature) + 1] += (1 - left) * ridge
    return exponents + np.linalg.solve(curvature, gradient), curvature
