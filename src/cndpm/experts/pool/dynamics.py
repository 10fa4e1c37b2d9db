r"""Labels as they follow each other: what the one before tells of the next.

.. math::
    \log \frac{p(y_{t+h} \mid y_t)}{p(y)}

with both counted over the latest two thousand samples. It is about the row that comes next, never about any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from cndpm.experts.pool.moments import Labels
from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, tensor, whole

__all__ = ["Dynamics"]

_KEEP = 0.9995
"""What counts keep after a sample."""

_PSEUDO = 0.1
"""Samples that every pair of labels begins with."""


class Dynamics(Keeps):
    """Counts pairs of labels.

    Example:
        >>> dynamics = Dynamics()
        >>> dynamics.admit(2)
        >>> dynamics.learn(np.array([0, 1] * 50))
        >>> int(dynamics.lift(1).argmax())  # 1 came last
        0
    """

    kept: ClassVar = {"pairs": tensor("labels", "labels"), "counts": tensor("labels"), "last": whole(low=-1)}

    def __init__(self) -> None:
        self.pairs, self.counts, self.last = np.zeros((0, 0)), np.zeros(0), -1

    def admit(self, n_labels: int) -> None:
        """Makes room for labels below `n_labels`."""
        if (more := n_labels - len(self.counts)) > 0:
            self.pairs, self.counts = np.pad(self.pairs, (0, more)), np.pad(self.counts, (0, more))

    def relabel(self, places: Labels) -> None:
        """Gives labels other numbers: label y becomes `places[y]`, (C,), and there is room for all of them."""
        self.admit(len(places))
        order = np.argsort(places)
        self.pairs, self.counts = self.pairs[np.ix_(order, order)], self.counts[order]
        self.last = self.last if self.last < 0 else int(places[self.last])

    def lift(self, n: int, since: Sequence[int] = (), *, is_each_known: bool = False) -> Floats:
        """Returns log p(label | the latest label known) - log p(label) for the next n samples, (n, C).

        Args:
            n: The h-th of them comes h samples after the latest label that is known.
            since: Labels that have come since those that were learned.
            is_each_known: Whether each of `since` is known before the sample behind it is asked about; those are the n.
        """
        latest = since[-1] if len(since) and not is_each_known else self.last
        if not 0 <= latest < len(self.counts):  # nothing has come, or a label that never came here
            return np.zeros((n, len(self.counts)))
        if is_each_known:
            lifted = self._steps([self.last, *since[: n - 1]])
        elif n == 1:
            lifted = self._steps(slice(latest, latest + 1))
        else:
            step, lifted = self._steps(slice(None)), np.empty((n, len(self.counts)))
            lifted[0] = step[latest]
            for h in range(1, n):
                lifted[h] = lifted[h - 1] @ step
        usual = self.counts + _PSEUDO
        lifted /= usual / np.add.reduce(usual)
        return np.log(lifted, out=lifted)

    def _steps(self, labels: Any) -> Floats:
        """Returns the probabilities of the label behind each of some, (n, C)."""
        steps: Floats = self.pairs[labels] + _PSEUDO
        steps /= np.add.reduce(steps, axis=1, keepdims=True)
        return steps

    def learn(self, y: Labels) -> None:
        """Counts the labels of samples that came one after the other, (B,)."""
        for label in y.tolist():
            self.pairs *= _KEEP
            self.counts *= _KEEP
            self.counts[label] += 1
            if self.last >= 0:
                self.pairs[self.last, label] += 1
            self.last = label
