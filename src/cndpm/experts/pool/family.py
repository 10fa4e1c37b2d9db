"""Classes or values: how members of a pool answer, how answers are scored and mixed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.experts.pool.discriminants import Discriminants
from cndpm.experts.pool.forgetting import Floats
from cndpm.experts.pool.members import Members
from cndpm.experts.pool.regressions import Regressions
from cndpm.mixture.time import log_normalise

__all__ = ["ClassFamily", "Family", "ValueFamily"]

Targets = NDArray[Any]

FLOOR = 8.0
"""Nats below the best member of a sample at which others are cut off: no sample may decide alone."""


class Family(ABC):
    """Makes members, and answers of them at every temperature. Shapes: M members, T temperatures, B samples.

    Attributes:
        temperatures: Factors on log-probabilities, among which evidence chooses.
        stacks: Whether a log-linear pool of the members is put beside their mixture.
        hears_experts: Whether the mixture of experts counts as a member.
        relabels: Whether a rule with its labels exchanged counts as a member.

    Example:
        >>> family: Family = ClassFamily()
        >>> family.n_temperatures
        4
    """

    temperatures: tuple[float, ...]
    stacks: bool
    hears_experts: bool
    relabels: bool

    @property
    def n_temperatures(self) -> int:
        """T."""
        return len(self.temperatures)

    @abstractmethod
    def make(self, n_features: int, width: int, keeps: tuple[float, ...]) -> Members:
        """Makes members of one representation.

        Args:
            n_features: Of the representation.
            width: Number of classes, or of targets.
            keeps: What is left of a sample after the next one, by member.
        """

    @abstractmethod
    def tempered(self, answers: Floats) -> Floats:
        """Returns answers (M, B, ...) at every temperature, (M, T, B, ...)."""

    @abstractmethod
    def log_scores(self, answers: Floats, y: Targets) -> Floats:
        """Returns log p(y | x) by answers, (..., B).

        Args:
            answers: (..., B, C) or (..., B, 2, o).
            y: Class indices (B,) or targets (B, o).
        """

    @abstractmethod
    def linear(self, answers: Floats) -> Floats:
        """Returns answers in the form in which that of a mixture is the weighted sum; of the same shape."""

    @abstractmethod
    def from_linear(self, mixed: Floats) -> Floats:
        """Returns the answers of what :meth:`linear` returned, or of sums of it."""


class ClassFamily(Family):
    """Answers with log-probabilities of classes, (..., B, C); their mixtures are those of probabilities.

    Example:
        >>> family = ClassFamily()
        >>> family.linear(family.tempered(np.log([[[0.8, 0.2]]])))[0, :, 0].round(2)  # sharper and flatter
        array([[0.94, 0.06],
               [0.8 , 0.2 ],
               [0.67, 0.33],
               [0.59, 0.41]])
    """

    temperatures = (2.0, 1.0, 0.5, 0.25)
    stacks = True
    hears_experts = True
    relabels = True

    def make(self, n_features: int, width: int, keeps: tuple[float, ...]) -> Discriminants:
        return Discriminants(n_features, width, keeps)

    def tempered(self, answers: Floats) -> Floats:
        sharpness = np.array(self.temperatures)[:, None, None]
        return log_normalise(answers[:, None] * sharpness)

    def log_scores(self, answers: Floats, y: Targets) -> Floats:
        scores: Floats = answers[..., np.arange(len(y)), y]
        return scores

    def linear(self, answers: Floats) -> Floats:
        return np.exp(answers)

    def from_linear(self, mixed: Floats) -> Floats:
        return np.log(np.maximum(mixed, 1e-300))


class ValueFamily(Family):
    """Answers with means and variances, (..., B, 2, o); their mixtures are those of the first two moments.

    Example:
        >>> family, answers = ValueFamily(), np.array([[[0.0], [1.0]], [[2.0], [1.0]]])  # two samples, one target
        >>> family.from_linear(family.linear(answers).mean(axis=0)).ravel()
        array([1., 2.])
    """

    temperatures = (1.0,)
    stacks = False
    hears_experts = False  # their variances change too much when an expert is founded
    relabels = False

    def make(self, n_features: int, width: int, keeps: tuple[float, ...]) -> Regressions:
        return Regressions(n_features, width, keeps)

    def tempered(self, answers: Floats) -> Floats:
        return answers[:, None]

    def log_scores(self, answers: Floats, y: Targets) -> Floats:
        mean, variance = answers[..., 0, :], answers[..., 1, :]
        squares = (y - mean) ** 2 / variance
        scores: Floats = -0.5 * (squares + np.log(2 * math.pi * variance)).sum(axis=-1)
        return scores

    def linear(self, answers: Floats) -> Floats:
        mean, variance = answers[..., 0, :], answers[..., 1, :]
        return np.stack([mean, variance + mean**2], axis=-2)

    def from_linear(self, mixed: Floats) -> Floats:
        mean, square = mixed[..., 0, :], mixed[..., 1, :]
        return np.stack([mean, np.maximum(square - mean**2, 1e-12)], axis=-2)
