"""Weighs Gaussian answers of many members by how well they foretold: one answer, a mean and a variance.

Every member is a candidate at three widths. Candidates are weighed by their discounted log density at two clocks; a
third answer corrects the slower of these two by a regression on how the members differ from it. The three, each with
the variance that its errors ask for, and again with the width that errors near by ask for, are weighed in turn.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.experts.pool.representations import Floats
from cndpm.state import State, expect, tensor

__all__ = ["ValueMix", "log_density", "softmax"]

_WIDTHS = np.array([0.5, 1.0, 2.0])
_CLOCKS = np.array([0.98, 0.998])
_TOP = 0.99
_ERRORS_KEEP = 0.995
_FLOOR = 6.0
"""Nats below the best at which a row's log density ends, so that one outlier does not decide."""

_STACK_PRIOR = 20.0
"""Rows' worth of reluctance to leave the mixture."""

_NAMES = ("evidence", "top", "stack", "curvature", "errors", "n_errors")


def softmax(a: Floats) -> Floats:
    """Returns weights that add up to one along the last axis."""
    a = np.exp(a - a.max(axis=-1, keepdims=True))
    return np.asarray(a / a.sum(axis=-1, keepdims=True))


def log_density(y: Floats, mean: Floats, variance: Floats) -> Floats:
    """Returns the log density of targets up to a constant, summed over outputs: (..., B) of (..., B, o)."""
    return np.asarray(-0.5 * ((y - mean) ** 2 / variance + np.log(variance)).sum(axis=-1))


def floored(log_densities: Floats) -> Floats:
    """Bounds log densities, (M, B), from below by the best of each row."""
    return np.asarray(np.maximum(log_densities, log_densities.max(axis=0) - _FLOOR))


def discounted(evidence: Floats, discount: Floats, scores: Floats) -> Floats:
    """Adds rows' scores to evidence that fades.

    Args:
        evidence: (K, M).
        discount: What is left after a row, (K,).
        scores: (M, B).
    """
    n = scores.shape[1]
    fade = discount[:, None] ** np.arange(n - 1, -1, -1)
    return np.asarray(discount[:, None] ** n * evidence + fade @ scores.T)


class Told:
    """What was said of B rows, for learning from it.

    Attributes:
        mean: Of the members, (M, B, o).
        variance: Of the members, (M, B, o).
        plain: Of the candidates before their errors are asked, (3, 2, B, o).
        candidates: (6, 2, B, o).
        answer: (B, 2, o).
    """

    def __init__(self, mean: Floats, variance: Floats, plain: Floats, candidates: Floats, answer: Floats) -> None:
        self.mean, self.variance, self.plain, self.candidates, self.answer = mean, variance, plain, candidates, answer

    def ratios(self, y: Floats) -> Floats:
        """Returns squared errors in units of the variance without regard to what is near, at most 25, (B,)."""
        return np.asarray(np.minimum((y - self.answer[:, 0]) ** 2 / self.candidates[1, 1], 25.0).mean(axis=1))


class ValueMix:
    """Weights of M members.

    Args:
        n_members: M.
        n_outputs: o.
        trusted: Members that begin with a little more evidence.

    Example:
        >>> mix = ValueMix(2, 1, trusted=())
        >>> mean, variance = np.array([[[0.0]], [[1.0]]]), np.ones((2, 1, 1))
        >>> for _ in range(20):
        ...     mix.learn(np.array([[1.0]]), mix.tell(mean, variance, np.ones(1)))
        >>> bool(mix.tell(mean, variance, np.ones(1)).answer[0, 0, 0] > 0.9)
        True
    """

    def __init__(self, n_members: int, n_outputs: int, trusted: tuple[int, ...]) -> None:
        self.n_members, self.n_outputs = n_members, n_outputs
        self._evidence = np.zeros((2, len(_WIDTHS), n_members))
        self._evidence[:, 1, list(trusted)] = 2.0
        self._top, self._stack = np.zeros(6), np.zeros(n_members)
        self._top[3:] = -2.0
        self._curvature = _STACK_PRIOR * np.eye(n_members)
        self._errors, self._n_errors = np.full((3, n_outputs), 5.0), np.full(3, 5.0)

    def favoured(self, some: NDArray[np.int64]) -> int:
        """Returns which of some members has most evidence at the quick clock."""
        return int(some[self._evidence[0][:, some].max(axis=0).argmax()])

    def tell(self, mean: Floats, variance: Floats, width: Floats) -> Told:
        """Answers.

        Args:
            mean: Of the members, (M, B, o).
            variance: Of the members, (M, B, o).
            width: How much larger squared errors are near each row than everywhere, (B,).
        """
        plain = np.empty((3, 2, *mean.shape[1:]))
        for clock in range(2):
            weights = softmax(self._evidence[clock].ravel()).reshape(len(_WIDTHS), -1)
            plain[clock] = _mixed(weights.sum(axis=0), mean, (_WIDTHS**2) @ weights, variance)
        plain[2] = plain[1]
        plain[2, 0] += np.tensordot(self._stack, mean - plain[1, 0], 1)
        candidates = np.concatenate([plain, plain])
        candidates[:, 1] *= np.tile(self._errors / self._n_errors[:, None], (2, 1))[:, None]
        candidates[3:, 1] *= width[:, None]
        weights = softmax(self._top)
        answer = _mixed(weights, candidates[:, 0], weights, candidates[:, 1])
        return Told(mean, variance, plain, candidates, answer.transpose(1, 0, 2))

    def learn(self, y: Floats, told: Told) -> None:
        """Learns from targets (B, o) how well they were foretold."""
        wide = _WIDTHS[:, None, None, None] ** 2 * told.variance
        scores = floored(log_density(y, told.mean, wide).reshape(-1, len(y)))
        shape = self._evidence.shape
        self._evidence = discounted(self._evidence.reshape(2, -1), _CLOCKS, scores).reshape(shape)
        top = floored(log_density(y, told.candidates[:, 0], told.candidates[:, 1]))
        self._top = discounted(self._top[None], np.array([_TOP]), top)[0]
        self._note_errors(y, told.plain)
        self._learn_stack(y, told)

    def _note_errors(self, y: Floats, plain: Floats) -> None:
        fade, left = _ERRORS_KEEP ** np.arange(len(y) - 1, -1, -1), _ERRORS_KEEP ** len(y)
        ratios = np.minimum((y - plain[:, 0]) ** 2 / plain[:, 1], 100.0)
        self._errors = left * self._errors + np.tensordot(ratios, fade, (1, 0))
        self._n_errors = left * self._n_errors + fade.sum()

    def _learn_stack(self, y: Floats, told: Told) -> None:
        """Takes a Newton step of the faded squared error, in units of the mixture's variance."""
        mean, variance = told.candidates[1]
        scale = 1 / np.sqrt(variance)
        apart = ((told.mean - mean) * scale).reshape(self.n_members, -1)
        error = np.clip((y - told.plain[2, 0]) * scale, -3, 3).ravel()
        left = _CLOCKS[1] ** len(y)
        self._curvature = left * self._curvature + apart @ apart.T
        self._curvature.flat[:: self.n_members + 1] += (1 - left) * _STACK_PRIOR
        self._stack = self._stack + np.linalg.solve(self._curvature, apart @ error)

    def state_dict(self) -> State:
        """Returns everything as tensors."""
        return {name: torch.from_numpy(getattr(self, f"_{name}").copy()) for name in _NAMES}

    def check(self, state: State) -> None:
        """Raises StateError where a state has another form."""
        m = self.n_members
        forms = {"evidence": tensor(2, len(_WIDTHS), m), "top": tensor(6), "stack": tensor(m)}
        forms |= {"curvature": tensor(m, m), "errors": tensor(3, self.n_outputs), "n_errors": tensor(3)}
        expect(state, forms)

    def load_state_dict(self, state: State) -> None:
        """Takes a state of :meth:`state_dict`."""
        self.check(state)
        for name in _NAMES:
            setattr(self, f"_{name}", state[name].numpy().copy())


def _mixed(weights: Floats, mean: Floats, of_variance: Floats, variance: Floats) -> Floats:
    """Returns mean and variance, (2, B, o), of a mixture of Gaussians (M, B, o)."""
    middle = np.tensordot(weights, mean, 1)
    spread = np.tensordot(weights, (mean - middle) ** 2, 1)
    return np.stack([middle, spread + np.tensordot(of_variance, variance, 1)])
