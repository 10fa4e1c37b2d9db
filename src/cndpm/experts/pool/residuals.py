"""Errors as they follow each other: an autoregression of second order, weighed by evidence."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from cndpm.experts.pool.mix import softmax
from cndpm.experts.pool.representations import Floats
from cndpm.experts.pool.value_mix import discounted, log_density
from cndpm.state import Keeps, tensor

__all__ = ["Residuals"]

_KEEP = np.array([0.99])
_FAR = 10.0
"""Bound of what is foreseen, in standard units."""


class NextTold(NamedTuple):
    """Holds what was said of the next rows.

    Attributes:
        candidates: Without and with the errors before, (2, B, 2, o).
        answer: (B, 2, o).
    """

    candidates: Floats
    answer: Floats


class Residuals(Keeps):
    """Errors e(t) = a e(t - 1) + b e(t - 2) of each output, by faded least squares.

    Args:
        n_outputs: o.

    Example:
        >>> residuals = Residuals(1)
        >>> answer = np.array([[[0.0], [1.0]]])
        >>> for _ in range(40):
        ...     residuals.learn(np.array([[0.8]]), answer, residuals.tell(answer))
        >>> bool(residuals.tell(answer).answer[0, 0, 0] > 0.6)
        True
    """

    kept: ClassVar = {
        "latest": tensor(2, "o"),
        "sums": tensor("o", 2, 2),
        "products": tensor("o", 2),
        "evidence": tensor(2),
        "errors": tensor(2, "o"),
    }

    def __init__(self, n_outputs: int) -> None:
        self.latest = np.zeros((2, n_outputs))
        self.sums, self.products = np.tile(np.eye(2), (n_outputs, 1, 1)), np.zeros((n_outputs, 2))
        self.evidence = np.array([2.0, 0.0])
        self.errors = np.full((2, n_outputs), 5.0)

    def tell(self, answer: Floats, n_before: int = 0) -> NextTold:
        """Corrects an answer of rows that come next in turn.

        Args:
            answer: (B, 2, o).
            n_before: Rows that come before them.
        """
        coefficients = np.linalg.solve(self.sums, self.products[:, :, None])[:, :, 0]
        errors = [self.latest[1], self.latest[0]]
        for _ in range(n_before + len(answer)):
            errors.append(coefficients[:, 0] * errors[-1] + coefficients[:, 1] * errors[-2])
        shift = np.clip(errors[2 + n_before :], -_FAR, _FAR)
        with_errors = answer.copy()
        with_errors[:, 0] += shift
        with_errors[:, 1] *= self.errors[1] / self.errors[0]
        candidates, (one, other) = np.stack([answer, with_errors]), softmax(self.evidence)
        told = one * answer + other * with_errors
        told[:, 1] += one * other * shift**2
        return NextTold(candidates, told)

    def learn(self, y: Floats, answer: Floats, told: NextTold) -> None:
        """Learns errors.

        Args:
            y: Targets, (B, o).
            answer: Without errors before, (B, 2, o).
            told: What :meth:`tell` made of it.
        """
        mean, variance = told.candidates.transpose(2, 0, 1, 3)
        self.evidence = discounted(self.evidence[None], _KEEP, log_density(y, mean, variance))[0]
        fade, left = _KEEP ** np.arange(len(y) - 1, -1, -1), _KEEP[0] ** len(y)
        self.errors = left * self.errors + np.tensordot(np.minimum((y - mean) ** 2 / answer[:, 1], 100.0), fade, (1, 0))
        for error, deviation in zip(y - answer[:, 0], np.sqrt(answer[:, 1]), strict=True):
            error = np.clip(error, -5 * deviation, 5 * deviation)
            lags = self.latest.T / deviation[:, None]
            self.sums = _KEEP * self.sums + lags[:, :, None] * lags[:, None] + (1 - _KEEP) * np.eye(2)
            self.products = _KEEP * self.products + lags * (error / deviation)[:, None]
            self.latest = np.stack([error, self.latest[0]])
