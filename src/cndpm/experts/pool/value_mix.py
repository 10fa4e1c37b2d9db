"""Weighs Gaussian answers of many members by how well they foretold: one answer, a mean and a variance.

Every member is a candidate at three widths. Candidates are weighed by their discounted log density at two clocks; a
third answer corrects the slower of these two by a regression on how the members differ from it. The three, each with
the variance that its errors ask for, are weighed in turn. How far variances follow the width that noise has at a row
is again a matter of evidence.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cndpm.experts.pool.mix import softmax
from cndpm.experts.pool.representations import Floats
from cndpm.experts.pool.value_moments import ERRORS_KEEP
from cndpm.state import Keeps, tensor

__all__ = ["ValueMix", "log_density"]

_WIDTHS = np.array([0.5, 1.0, 2.0])
_CLOCKS = np.array([0.98, 0.998])
_TOP = np.array([0.99])
_FLOOR = 6.0
"""Nats below the best at which a row's log density ends, so that one outlier does not decide."""

_STACK_PRIOR = 20.0
"""Rows' worth of reluctance to leave the mixture."""


def log_density(y: Floats, mean: Floats, variance: Floats) -> Floats:
    """Returns the log density of targets up to a constant, summed over outputs, (..., B).

    Args:
        y: Targets, (B, o).
        mean: Of the Gaussians, (..., B, o).
        variance: Of the Gaussians, (..., B, o).
    """
    return np.asarray(-0.5 * ((y - mean) ** 2 / variance + np.log(variance)).sum(axis=-1))


def floored(log_densities: Floats) -> Floats:
    """Bounds log densities, (M, B), from below by the best of each row."""
    return np.asarray(np.maximum(log_densities, log_densities.max(axis=0) - _FLOOR))


def discounted(evidence: Floats, clocks: Floats, scores: Floats) -> Floats:
    """Adds rows' scores, none far below the best, to evidence that fades.

    Args:
        evidence: (K, M).
        clocks: What is left after a row, (K,).
        scores: (M, B).
    """
    n = scores.shape[1]
    fade = clocks[:, None] ** np.arange(n - 1, -1, -1)
    return np.asarray(clocks[:, None] ** n * evidence + fade @ floored(scores).T)


class Told(NamedTuple):
    """Holds what was said of B rows, for learning from it.

    Attributes:
        mean: Of the members, (M, B, o).
        variance: Of the members, (M, B, o).
        wide: Variances of candidates that follow the widths or not, before errors are asked, (2, 3, B, o).
        levels: What their errors ask for, (2, 3, 1, o).
        candidates: (3, 2, B, o).
        answer: (B, 2, o).
    """

    mean: Floats
    variance: Floats
    wide: Floats
    levels: Floats
    candidates: Floats
    answer: Floats


class ValueMix(Keeps):
    """Weights of M members.

    Args:
        n_members: M.
        n_outputs: o.
        trusted: Members that begin with a little more evidence.

    Example:
        >>> mix = ValueMix(2, 1, trusted=())
        >>> mean, variance = np.array([[[0.0]], [[1.0]]]), np.ones((2, 1, 1))
        >>> for _ in range(20):
        ...     mix.learn(np.array([[1.0]]), mix.tell(mean, variance, np.ones((1, 1))))
        >>> bool(mix.tell(mean, variance, np.ones((1, 1))).answer[0, 0, 0] > 0.9)
        True
    """

    kept: ClassVar = {
        "evidence": tensor(2, len(_WIDTHS), "members"),
        "top": tensor(3),
        "follow": tensor(2),
        "stack": tensor("members"),
        "curvature": tensor("members", "members"),
        "errors": tensor(2, 3, "o"),
        "n_errors": tensor(1),
    }

    def __init__(self, n_members: int, n_outputs: int, trusted: NDArray[np.int64] | tuple[int, ...]) -> None:
        self.evidence = np.zeros((2, len(_WIDTHS), n_members))
        self.evidence[:, 1, list(trusted)] = 2.0
        self.top, self.follow, self.stack = np.zeros(3), np.zeros(2), np.zeros(n_members)
        self.curvature = _STACK_PRIOR * np.eye(n_members)
        self.errors, self.n_errors = np.full((2, 3, n_outputs), 5.0), np.full(1, 5.0)

    @property
    def weights(self) -> Floats:
        """Shares that members have in a mean, (M,); what the third answer corrects it by is left out."""
        by_clock = softmax(self.evidence.reshape(2, -1)).reshape(self.evidence.shape).sum(axis=1)
        return np.asarray(softmax(self.top) @ by_clock[[0, 1, 1]])

    def favoured(self, some: NDArray[np.int64]) -> int:
        """Returns which of some members has most evidence at the quick clock."""
        return int(some[self.evidence[0][:, some].max(axis=0).argmax()])

    def tell(self, mean: Floats, variance: Floats, widths: Floats) -> Told:
        """Answers.

        Args:
            mean: Of the members, (M, B, o).
            variance: Of the members, (M, B, o).
            widths: How much wider noise is at each row than elsewhere, (B, 1).
        """
        plain = np.empty((3, 2, *mean.shape[1:]))
        for clock, weights in enumerate(softmax(self.evidence.reshape(2, -1)).reshape(self.evidence.shape)):
            plain[clock] = _mixed(weights.sum(axis=0), mean, (_WIDTHS**2) @ weights, variance)
        plain[2] = plain[1]
        stacked = plain[1, 0] + np.tensordot(self.stack, mean - plain[1, 0], 1)
        plain[2, 0] = np.clip(stacked, mean.min(axis=0), mean.max(axis=0))
        wide = np.stack([plain[:, 1] * widths, plain[:, 1]])
        levels, candidates = (self.errors / self.n_errors)[:, :, None], plain.copy()
        candidates[:, 1] = np.exp(np.tensordot(softmax(self.follow), np.log(wide * levels), 1))
        weights = softmax(self.top)
        answer = _mixed(weights, candidates[:, 0], weights, candidates[:, 1])
        return Told(mean, variance, wide, levels, candidates, answer.transpose(1, 0, 2))

    def learn(self, y: Floats, told: Told) -> None:
        """Learns how well targets were foretold.

        Args:
            y: Targets, (B, o).
            told: What was said of them.
        """
        wide = _WIDTHS[:, None, None, None] ** 2 * told.variance
        scores = log_density(y, told.mean, wide).reshape(-1, len(y))
        self.evidence = discounted(self.evidence.reshape(2, -1), _CLOCKS, scores).reshape(self.evidence.shape)
        self.top = discounted(self.top[None], _TOP, log_density(y, *told.candidates.swapaxes(0, 1)))[0]
        both = told.wide * told.levels
        self.follow = discounted(self.follow[None], _CLOCKS[1:], log_density(y, told.candidates[1, 0], both[:, 1]))[0]
        ratios = np.minimum((y - told.candidates[:, 0]) ** 2 / told.wide, 100.0)
        fade, left = ERRORS_KEEP ** np.arange(len(y) - 1, -1, -1), ERRORS_KEEP ** len(y)
        self.errors = left * self.errors + np.tensordot(ratios, fade, (2, 0))
        self.n_errors = left * self.n_errors + fade.sum()
        self._learn_stack(y, told)

    def _learn_stack(self, y: Floats, told: Told) -> None:
        """Takes a Newton step of the faded squared error, in units of the mixture's variance."""
        mean, variance = told.candidates[1]
        scale = 1 / np.sqrt(variance)
        apart = ((told.mean - mean) * scale).reshape(len(self.stack), -1)
        error = np.clip((y - told.candidates[2, 0]) * scale, -3, 3).ravel()
        left = _CLOCKS[1] ** len(y)
        self.curvature = left * self.curvature + apart @ apart.T
        self.curvature.flat[:: len(self.stack) + 1] += (1 - left) * _STACK_PRIOR
        self.stack = self.stack + np.linalg.solve(self.curvature, apart @ error)


def _mixed(weights: Floats, mean: Floats, of_variance: Floats, variance: Floats) -> Floats:
    """Returns mean and variance, (2, B, o), of a mixture of Gaussians (M, B, o)."""
    middle = np.tensordot(weights, mean, 1)
    spread = np.tensordot(weights, (mean - middle) ** 2, 1)
    return np.stack([middle, spread + np.tensordot(of_variance, variance, 1)])
