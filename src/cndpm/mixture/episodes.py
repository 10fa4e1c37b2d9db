r"""Episodes: whether labels that came one after another are of one concept, or of several in turn.

Under one concept labels are draws from one distribution, whatever their order. With a Dirichlet prior the evidence of n
labels with counts n_c has a closed form,

.. math::
    \log p(y) = \log \frac{\Gamma(C a)}{\Gamma(n + C a)} + \sum_c \log \frac{\Gamma(n_c + a)}{\Gamma(a)},

so that two stretches of their own are weighed against one by a Bayes factor, in which too many stretches are punished
by themselves. Stretches that have most of their labels in common are one concept all the same.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

__all__ = ["largest_concept"]

_PSEUDO = 0.5
"""a: labels of each class that the prior counts for."""

Counts = NDArray[np.int64]


def largest_concept(labels: NDArray[np.int64], *, least: int) -> NDArray[np.bool_]:
    """Returns which labels are of the concept that has most of them, (n,) bool; all where there is one.

    Args:
        labels: Class indices in the order of their arrival, (n,).
        least: Labels that a stretch must have, at least 1.

    Example:
        >>> largest_concept(np.repeat([0, 1, 0, 1, 7, 8], 5), least=5).sum()
        np.int64(20)
        >>> largest_concept(np.tile([0, 1, 7, 8], 5), least=5).all()  # the same labels, mixed
        np.True_
    """
    classes, indices = np.unique(labels, return_inverse=True)
    before = np.zeros((len(labels) + 1, len(classes)), dtype=np.int64)
    np.cumsum(np.eye(len(classes), dtype=np.int64)[indices], axis=0, out=before[1:])
    ends = [0, *_cuts(before, 0, len(labels), least), len(labels)]
    shares = [(before[b] - before[a]) / max(1, b - a) for a, b in pairwise(ends)]
    concept = list(range(len(shares)))
    for i, j in combinations(range(len(shares)), 2):
        if float(np.minimum(shares[i], shares[j]).sum()) > 1 / 2:  # most labels in common
            concept = [concept[i] if name == concept[j] else name for name in concept]
    of_label = np.repeat(concept, np.diff(ends))
    is_mine: NDArray[np.bool_] = of_label == np.bincount(of_label).argmax()
    return is_mine


def _cuts(before: Counts, start: int, end: int, least: int) -> list[int]:
    """Returns where, ascending, labels from `start` to `end` are cut; `before` counts labels up to each."""
    if end - start < 2 * least:
        return []
    places = before[start : end + 1]
    apart = _log_evidence(places - places[0]) + _log_evidence(places[-1] - places)
    best = least + int(apart[least : len(apart) - least].argmax())
    is_peak = apart[best] >= max(apart[best - 1], apart[best + 1])  # else the change itself is too near to an end
    if not is_peak or apart[best] - math.log(end - start) <= apart[0]:
        return []
    cut = start + best
    return [*_cuts(before, start, cut, least), cut, *_cuts(before, cut, end, least)]


def _log_evidence(counts: Counts) -> NDArray[np.float64]:
    """Returns the log evidence of labels with the given counts, (..., C)."""
    total = counts.shape[-1] * _PSEUDO
    of_classes = (gammaln(counts + _PSEUDO) - gammaln(_PSEUDO)).sum(axis=-1)
    evidence: NDArray[np.float64] = gammaln(total) - gammaln(counts.sum(axis=-1) + total) + of_classes
    return evidence
