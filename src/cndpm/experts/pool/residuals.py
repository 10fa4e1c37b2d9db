"""Errors as they follow each other: an autoregression of second order, weighed by evidence."""

from __future__ import annotations

import numpy as np
import torch

from cndpm.experts.pool.representations import Floats
from cndpm.experts.pool.value_mix import discounted, floored, log_density, softmax
from cndpm.state import State, expect, tensor

__all__ = ["Residuals"]

_KEEP = 0.99
_FAR = 10.0
"""Bound of what is foreseen, in standard units."""

_NAMES = ("latest", "sums", "products", "evidence", "errors", "n_errors")


class Residuals:
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

    def __init__(self, n_outputs: int) -> None:
        self.n_outputs = n_outputs
        self._latest = np.zeros((2, n_outputs))
        self._sums, self._products = np.tile(np.eye(2), (n_outputs, 1, 1)), np.zeros((n_outputs, 2))
        self._evidence = np.array([2.0, 0.0])
        self._errors, self._n_errors = np.full((2, n_outputs), 5.0), np.full(1, 5.0)

    def tell(self, answer: Floats, n_before: int = 0) -> NextTold:
        """Corrects an answer of rows that come next in turn.

        Args:
            answer: (B, 2, o).
            n_before: Rows that come before them.
        """
        shift = self._foreseen(n_before + len(answer))[n_before:]
        mean, variance = answer[:, 0] + shift, answer[:, 1]
        ratio = self._errors / self._n_errors
        candidates = np.stack([answer, np.stack([mean, variance * ratio[1] / ratio[0]], axis=1)])
        weights = softmax(self._evidence)
        middle = weights[0] * answer[:, 0] + weights[1] * mean
        spread = weights[0] * weights[1] * shift**2
        widths = np.tensordot(weights, candidates[:, :, 1], 1) + spread
        return NextTold(candidates, np.stack([middle, widths], axis=1))

    def _foreseen(self, n: int) -> Floats:
        """Returns the next n errors, (n, o)."""
        coefficients = np.linalg.solve(self._sums, self._products[:, :, None])[:, :, 0]
        errors = np.empty((n + 2, self.n_outputs))
        errors[:2] = self._latest[::-1]
        for row in range(2, n + 2):
            errors[row] = coefficients[:, 0] * errors[row - 1] + coefficients[:, 1] * errors[row - 2]
        return np.clip(errors[2:], -_FAR, _FAR)

    def learn(self, y: Floats, answer: Floats, told: NextTold) -> None:
        """Learns errors.

        Args:
            y: Targets, (B, o).
            answer: Without errors before, (B, 2, o).
            told: What :meth:`tell` made of it.
        """
        candidates = told.candidates
        scores = floored(log_density(y, candidates[:, :, 0], candidates[:, :, 1]))
        self._evidence = discounted(self._evidence[None], np.array([_KEEP]), scores)[0]
        ratios = np.minimum((y - candidates[:, :, 0]) ** 2 / answer[:, 1], 100.0)
        fade, left = _KEEP ** np.arange(len(y) - 1, -1, -1), _KEEP ** len(y)
        self._errors = left * self._errors + np.tensordot(ratios, fade, (1, 0))
        self._n_errors = left * self._n_errors + fade.sum()
        for error, deviation in zip(y - answer[:, 0], np.sqrt(answer[:, 1]), strict=True):
            error = np.clip(error, -5 * deviation, 5 * deviation)
            lags = self._latest.T / deviation[:, None]
            self._sums = _KEEP * self._sums + lags[:, :, None] * lags[:, None] + (1 - _KEEP) * np.eye(2)
            self._products = _KEEP * self._products + lags * (error / deviation)[:, None]
            self._latest = np.stack([error, self._latest[0]])

    def state_dict(self) -> State:
        """Returns everything as tensors."""
        return {name: torch.from_numpy(getattr(self, f"_{name}").copy()) for name in _NAMES}

    def check(self, state: State) -> None:
        """Raises StateError where a state has another form."""
        o = self.n_outputs
        forms = {"latest": tensor(2, o), "sums": tensor(o, 2, 2), "products": tensor(o, 2)}
        expect(state, forms | {"evidence": tensor(2), "errors": tensor(2, o), "n_errors": tensor(1)})

    def load_state_dict(self, state: State) -> None:
        """Takes a state of :meth:`state_dict`."""
        self.check(state)
        for name in _NAMES:
            setattr(self, f"_{name}", state[name].numpy().copy())


class NextTold:
    """Holds what was said of the next rows.

    Attributes:
        candidates: Without and with the errors before, (2, B, 2, o).
        answer: (B, 2, o).
    """

    def __init__(self, candidates: Floats, answer: Floats) -> None:
        self.candidates, self.answer = candidates, answer
