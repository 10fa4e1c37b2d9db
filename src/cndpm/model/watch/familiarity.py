"""Says how familiar a row is: the place of its log density among those of rows that are known.

The share of known rows that look at least as strange as a given one, its p-value, needs no assumption on the density.
*Novelty* is the negative log of that share, so it means the same at any time, for any data and any model: of rows like
the known ones one in a hundred has a novelty above log 100 = 4.6.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TAIL = 20
"""One in so many known rows, the strangest, tell how novelty grows beyond the strangest of all."""

_ENOUGH = 50
"""Rows that each half must have before they are compared."""

_DEVIATIONS = 3.0
"""Deviations from equality that are no chance."""


class Familiarity:
    """Compares log densities with those of E known rows, each as if it had not been learned, (E,), E at least 2.

    They are in the order of their arrival. Where the later half looks stranger than the earlier, by more than chance,
    it counts alone: in a stream that drifts, rows that come are at the edge of what is known.

    Example:
        >>> familiarity = Familiarity(np.random.default_rng(0).permutation(np.arange(99.0)))
        >>> np.exp(-familiarity.novelty(np.array([0.0, 9.0, 49.0, 100.0]))).round(2).tolist()
        [0.01, 0.1, 0.5, 1.0]
        >>> round(familiarity.level(0.1), 6)
        9.0
    """

    def __init__(self, known: Floats) -> None:
        half = len(known) // 2
        self._known = np.sort(known[half:] if _looks_stranger(known[half:], known[:half]) else known)
        n = len(self._known)
        strangest = self._known[: max(2, n // _TAIL)]
        self._tail = max(float(strangest[-1] - strangest.mean()), 1e-9)
        self._novelty = np.log(n + 1) - np.log(np.arange(1, n + 1))

    def novelty(self, scores: Floats) -> Floats:
        """Returns the negative log share of known rows whose log density is as low as the given ones, (n,).

        Beyond the strangest known row it grows as it would if the tail of the known ones were exponential.
        """
        beyond = np.maximum(self._known[0] - scores, 0.0) / self._tail
        among = np.where(scores > self._known[-1], 0.0, np.interp(scores, self._known, self._novelty))
        novelty: Floats = among + beyond
        return novelty

    def level(self, rate: float) -> float:
        """Returns the log density below which a share `rate` of known rows lies."""
        novelty = -math.log(rate)
        beyond = max(0.0, novelty - float(self._novelty[0])) * self._tail
        return float(np.interp(novelty, self._novelty[::-1], self._known[::-1])) - beyond


def _looks_stranger(later: Floats, earlier: Floats) -> bool:
    """Returns whether later values are lower than earlier ones by more than chance (Mann and Whitney's test)."""
    if len(earlier) < _ENOUGH:
        return False
    share = float(np.searchsorted(np.sort(earlier), later).mean()) / len(earlier)
    deviation = math.sqrt((1 / len(later) + 1 / len(earlier)) / 12)
    return share < 0.5 - _DEVIATIONS * deviation
