"""Scores of answers that were given before the truth was known, added up batch by batch.

Each kind of answer has its scores: classes (accuracy, log loss, Cohen's kappa), real values (absolute and squared
error, log loss) and densities (bits per dimension). What is kept does not grow with the stream.
"""

from __future__ import annotations

import math
from copy import deepcopy
from itertools import zip_longest
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from cndpm.state import State

_LOG_LEAST = math.log(torch.finfo(torch.float64).eps)
"""The least log-probability that counts, as in scikit-learn: a class held impossible costs 36 nats, not infinity."""


class ClassAnswers(NamedTuple):
    """Answers of a classifier to one batch."""

    predicted: Tensor  # the most probable classes, (batch,), int64
    truth: Tensor  # the classes, (batch,), int64
    # Log-probabilities that the model gave to these, (batch,), float64; None where it gives none
    log_truth: Tensor | None = None

    def losses(self) -> Tensor:
        """Returns 1 for every wrong answer and 0 for the others, (batch,)."""
        return (self.predicted != self.truth).double()


class ValueAnswers(NamedTuple):
    """Answers of a regressor to one batch."""

    mean: Tensor  # predicted values, (batch, n_outputs)
    truth: Tensor  # the values, (batch, n_outputs)
    variance: Tensor | None = None  # predicted variances, (batch, n_outputs); None where the model gives none

    def losses(self) -> Tensor:
        """Returns the absolute errors, averaged over outputs, (batch,)."""
        return (self.mean.double() - self.truth.double()).abs().mean(1)


class DensityAnswers(NamedTuple):
    """Answers of a density to one batch."""

    log_density: Tensor  # of every sample, (batch,)
    n_dims: int  # numbers in one sample

    def losses(self) -> Tensor:
        """Returns the bits per dimension, (batch,)."""
        return -self.log_density.double() / (math.log(2) * self.n_dims)


class Sums:
    """Keeps sums along a stream: `kept` names attributes that are plain values, or sums themselves."""

    kept: ClassVar[tuple[str, ...]]

    def state_dict(self) -> State:
        values = {name: getattr(self, name) for name in self.kept}
        return {name: v.state_dict() if isinstance(v, Sums) else deepcopy(v) for name, v in values.items()}

    def load_state_dict(self, state: State) -> None:
        """Restores everything to the bit."""
        for name in self.kept:
            mine = getattr(self, name)
            if isinstance(mine, Sums):
                mine.load_state_dict(state[name])
            else:
                setattr(self, name, deepcopy(state[name]))


class ClassScores(Sums):
    r"""Accuracy in percent, mean log loss in nats, and Cohen's kappa, :math:`(p_o - p_e) / (1 - p_e)`.

    :math:`p_o` is the share of right answers, :math:`p_e` that of a model that answers each class as often, by chance.
    """

    kept = ("n_samples", "_n_right", "_n_weighed", "_log_loss", "_answered", "_true")

    def __init__(self) -> None:
        self.n_samples, self._n_right, self._n_weighed, self._log_loss = 0, 0, 0, 0.0
        self._answered: list[int] = []
        self._true: list[int] = []

    def add(self, answers: ClassAnswers) -> None:
        """Adds the answers to one batch."""
        self.n_samples += len(answers.truth)
        self._n_right += int((answers.predicted == answers.truth).sum())
        if answers.log_truth is not None:
            self._n_weighed += len(answers.truth)
            self._log_loss -= float(answers.log_truth.double().clamp(min=_LOG_LEAST).sum())
        n_classes = max(len(self._true), int(torch.maximum(answers.predicted, answers.truth).max()) + 1)
        self._answered = counted(self._answered, answers.predicted, n_classes)
        self._true = counted(self._true, answers.truth, n_classes)

    def results(self) -> dict[str, float]:
        """Returns the scores of all answers so far; none before the first."""
        if not self.n_samples:
            return {}
        observed = self._n_right / self.n_samples
        expected = sum(a * b for a, b in zip(self._answered, self._true, strict=True)) / self.n_samples**2
        kappa = (observed - expected) / (1 - expected) if expected < 1 else 1.0
        made = {"accuracy": 100 * observed, "kappa": kappa}
        return made | {"log_loss": self._log_loss / self._n_weighed} if self._n_weighed else made


class ValueScores(Sums):
    """Mean absolute error, root of the mean squared error, R squared, and the log loss of Gaussians, if any."""

    kept = ("n_samples", "_absolute", "_squared", "_n_weighed", "_log_loss", "_mean", "_scatter")

    def __init__(self) -> None:
        self.n_samples, self._absolute, self._squared, self._n_weighed, self._log_loss = 0, 0.0, 0.0, 0, 0.0
        self._mean: list[float] = []
        self._scatter: list[float] = []

    def add(self, answers: ValueAnswers) -> None:
        truth, error = answers.truth.double(), answers.mean.double() - answers.truth.double()
        self._follow(truth)
        self.n_samples += len(truth)
        self._absolute += float(answers.losses().sum())
        self._squared += float(error.square().mean(1).sum())
        if answers.variance is not None:
            variance = answers.variance.double()
            self._n_weighed += len(truth)
            self._log_loss += float(0.5 * ((2 * math.pi * variance).log() + error.square() / variance).sum())

    def results(self) -> dict[str, float]:
        if not self.n_samples:
            return {}
        made = {
            "absolute_error": self._absolute / self.n_samples,
            "root_squared_error": math.sqrt(self._squared / self.n_samples),
        }
        scatter = sum(self._scatter) / len(self._scatter)
        if scatter > 0:
            made["r_squared"] = 1 - self._squared / scatter
        return made | {"log_loss": self._log_loss / self._n_weighed} if self._n_weighed else made

    def _follow(self, truth: Tensor) -> None:
        """Updates the mean of every target and the squared distances to it, which no large mean cancels."""
        old, n = torch.tensor(self._mean or [0.0] * truth.shape[1], dtype=torch.float64), len(truth)
        scatter = torch.tensor(self._scatter or [0.0] * truth.shape[1], dtype=torch.float64)
        centre = truth.mean(0).cpu()
        step, total = centre - old, self.n_samples + n
        own = (truth.cpu() - centre).square().sum(0)
        self._scatter = (scatter + own + step.square() * (self.n_samples * n / total)).tolist()
        self._mean = (old + step * (n / total)).tolist()


class DensityScores(Sums):
    """Mean bits per dimension."""

    kept = ("n_samples", "_bits")

    def __init__(self) -> None:
        self.n_samples, self._bits = 0, 0.0

    def add(self, answers: DensityAnswers) -> None:
        self.n_samples += len(answers.log_density)
        self._bits += float(answers.losses().sum())

    def results(self) -> dict[str, float]:
        return {"bits_per_dim": self._bits / self.n_samples} if self.n_samples else {}


def counted(counts: list[int], classes: Tensor, n_classes: int) -> list[int]:
    """Adds the occurrences of some classes, (batch,), to counts, which grow to `n_classes`."""
    new = torch.bincount(classes, minlength=n_classes).tolist()
    return [before + more for before, more in zip_longest(counts, new, fillvalue=0)]
