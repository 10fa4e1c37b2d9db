r"""Relabelling: a rule whose labels were exchanged is known as soon as it is known which are which.

With p(c | x) what the rule says, and n_cy how often it said c lately when y was true,

.. math::
    p(y \mid x) = \sum_c p(c \mid x) \frac{n_{cy}}{\sum_{y'} n_{cy'}}

which needs as many samples as there are labels, where a new rule needs as many as it has features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cndpm.mixture.time import Floats

__all__ = ["count_labels", "relabel"]

_AS_LEARNED = 1.0
"""Samples that count for every label being what it was."""

_ANY_OTHER = 0.05
"""Samples that count for every other label."""


def relabel(proba: Floats, counts: Floats) -> Floats:
    """Returns the probabilities of labels as they are now, (B, C).

    Args:
        proba: Of labels as the rule learned them, (B, C).
        counts: n, faded, (c, c) for the c first labels.

    Example:
        >>> relabel(np.array([[0.9, 0.1]]), np.zeros((0, 0))).round(2)
        array([[0.86, 0.14]])
        >>> relabel(np.array([[0.9, 0.1]]), np.array([[0.0, 20.0], [20.0, 0.0]])).round(2)  # exchanged
        array([[0.14, 0.86]])
    """
    n, known = proba.shape[1], len(counts)
    table = np.full((n, n), _ANY_OTHER)
    table.flat[:: n + 1] = _AS_LEARNED
    table[:known, :known] += counts
    relabelled: Floats = proba @ (table / np.add.reduce(table, axis=1, keepdims=True))
    return relabelled


def count_labels(counts: Floats, proba: Floats, y: NDArray[np.int64], *, keep: float) -> Floats:
    """Returns the counts after B samples, (C, C).

    Args:
        counts: n before them, (c, c).
        proba: What the rule said, (B, C).
        y: True labels, (B,).
        keep: What is left of a sample after the next one.

    Example:
        >>> count_labels(np.zeros((0, 0)), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, 0]), keep=0.5)
        array([[0. , 0.5],
               [1. , 0. ]])
    """
    n, missing = len(y), proba.shape[1] - len(counts)
    fading = keep ** np.arange(n - 1, -1, -1)
    counted: Floats = keep**n * (np.pad(counts, (0, missing)) if missing else counts)
    if n == 1:
        counted[:, y[0]] += proba[0]
    else:
        np.add.at(counted.T, y, fading[:, None] * proba)
    return counted
