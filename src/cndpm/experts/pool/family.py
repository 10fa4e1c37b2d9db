"""Classes or values: how members of a pool answer, how answers are scored and mixed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.experts.pool.discriminants import Discriminants
from cndpm.experts.pool.forgetting import Floats
from cndpm.experts.pool.regressions import Regressions
from cndpm.mixture.time import log_normalise

__all__ = ["ClassFamily", "Family", "ValueFamily"]

Member = Discriminants | Regressions
Targets = NDArray[Any]

FLOOR = 8.0
"""Nats below the best member of a sample at which others are cut off: no sample may decide alone."""


class Family(ABC):
    """Makes members, and answers of them at every temperature. Shapes: H horizons, T temperatures, B samples.

    Attributes:
        temperatures: Factors on log-probabilities, among which evidence chooses.
        stacks: Whether a log-linear pool of the members is put beside their mixture.
        hears_experts: Whether the mixture of experts counts as a member.

    Example:
        >>> family: Family = ClassFamily()
        >>> family.n_temperatures
        4
    """

    temperatures: tuple[float, ...]
    stacks: bool
    hears_experts: bool

    @property
    def n_temperatures(self) -> int:
        """T."""
        return len(self.temperatures)

    @abstractmethod
    def make(self, n_features: int, width: int, keeps: tuple[float, ...]) -> Member:
        """Makes a member.

        Args:
            n_features: Of the representation.
            width: Number of classes, or of targets.
            keeps: What is left of a sample after the next one, by horizon.
        """

    @abstractmethod
    def answers(self, member: Any, z: Floats) -> Floats:
        """Returns a member's answers, (H, T, B, ...).

        Args:
            member: Made by this family.
            z: Features, (B, d).
        """

    @abstractmethod
    def of_another(self, answer: Floats) -> Floats:
        """Returns the answer of the experts as one of a member, (1, T, B, ...); (0, T, B, ...) if they are not heard.

        Args:
            answer: (B, ...).
        """

    @abstractmethod
    def log_scores(self, answers: Floats, y: Targets) -> Floats:
        """Returns log p(y | x) by answers, (..., B).

        Args:
            answers: (..., B, C) or (..., B, 2, o).
            y: Class indices (B,) or targets (B, o).
        """

    @abstractmethod
    def mix(self, weights: Floats, answers: Floats) -> Floats:
        """Returns the answer of a mixture, (B, ...).

        Args:
            weights: That sum to 1, (n,).
            answers: (n, B, ...).
        """


class ClassFamily(Family):
    """Answers with log-probabilities of classes, (..., B, C).

    Example:
        >>> family = ClassFamily()
        >>> np.exp(family.mix(np.array([0.5, 0.5]), np.log([[[0.9, 0.1]], [[0.5, 0.5]]])))
        array([[0.7, 0.3]])
    """

    temperatures = (2.0, 1.0, 0.5, 0.25)
    stacks = True
    hears_experts = True

    def make(self, n_features: int, width: int, keeps: tuple[float, ...]) -> Discriminants:
        return Discriminants(n_features, width, keeps)

    def answers(self, member: Any, z: Floats) -> Floats:
        return self._tempered(member.logits(z))

    def of_another(self, answer: Floats) -> Floats:
        return self._tempered(answer[None])

    def _tempered(self, logits: Floats) -> Floats:
        sharpness = np.array(self.temperatures)[None, :, None, None]
        return log_normalise(logits[:, None] * sharpness)

    def log_scores(self, answers: Floats, y: Targets) -> Floats:
        scores: Floats = answers[..., np.arange(len(y)), y]
        return scores

    def mix(self, weights: Floats, answers: Floats) -> Floats:
        mixed: Floats = np.tensordot(weights, np.exp(answers), axes=1)
        return np.log(np.maximum(mixed, 1e-300))


class ValueFamily(Family):
    """Answers with means and variances, (..., B, 2, o).

    Example:
        >>> family = ValueFamily()
        >>> family.mix(np.array([0.5, 0.5]), np.array([[[[0.0], [1.0]]], [[[2.0], [1.0]]]])).ravel()
        array([1., 2.])
    """

    temperatures = (1.0,)
    stacks = False
    hears_experts = False  # their variances change too much when an expert is founded

    def make(self, n_features: int, width: int, keeps: tuple[float, ...]) -> Regressions:
        return Regressions(n_features, width, keeps)

    def answers(self, member: Any, z: Floats) -> Floats:
        moments: Floats = member.moments(z)
        return moments[:, None]

    def of_another(self, answer: Floats) -> Floats:
        return answer[None, None][:0]

    def log_scores(self, answers: Floats, y: Targets) -> Floats:
        mean, variance = answers[..., 0, :], answers[..., 1, :]
        squares = (y - mean) ** 2 / variance
        scores: Floats = -0.5 * (squares + np.log(2 * math.pi * variance)).sum(axis=-1)
        return scores

    def mix(self, weights: Floats, answers: Floats) -> Floats:
        mean, variance = answers[..., 0, :], answers[..., 1, :]
        mixed = np.tensordot(weights, mean, axes=1)
        spread = np.tensordot(weights, variance + (mean - mixed) ** 2, axes=1)
        return np.stack([mixed, spread], axis=-2)
