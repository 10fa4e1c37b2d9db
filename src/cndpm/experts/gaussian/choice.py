"""Shrinkage of the shared covariance, for densities and for telling components apart, and tails, chosen from the data.

A density wants little shrinkage, since every direction counts alike; classes want more, because directions in which the
data hardly vary are the ones estimated worst and trusted most. The density's is judged on samples that the covariance
has not seen yet. For classes there is a closed form of the accuracy to expect
(:mod:`cndpm.experts.gaussian.discrimination`), which takes samples for normal; those of images spread more, and where
features are many it asks for too much. On all streams measured the best lay between the two, so predictions take the
geometric mean. Of fewer samples than features the closed form foretells noise; there classes take half a decade more
than densities. A shrinkage that counts as much as some fixed number of samples falls as their number grows, so both are
judged again, walking from where they stood, when that has grown by a step of their grid.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from cndpm.experts.gaussian.discrimination import expected_accuracy
from cndpm.experts.gaussian.factor import finite
from cndpm.experts.gaussian.shrinkage import (
    GRID_STEP,
    TAILS,
    choose_shrinkage,
    held_out_log_likelihood,
    mean_variance,
    oracle_shrinkage,
    shrunk_covariance,
)
from cndpm.experts.gaussian.statistics import SharedStatistics
from cndpm.state import Keeps, flag, maybe, number

_MIN_HELD_OUT = 8
_START = 1e-2

_MORE = 10.0
"""With fewer samples than features, stands for what the foretold accuracy would ask for, over the density's."""


class CovarianceChoice(Keeps):
    """Shrinkages and tails of Gaussians that share a covariance; None lets the data choose them.

    Components that are not there to be told apart (`for_classes`) have one shrinkage, the density's. Where others
    answer in their place, the accuracy to expect need not be foretold (`foretells`), which takes longest. `density` is
    lambda as densities want it, `accuracy` that of the highest accuracy that is foretold.
    """

    kept: ClassVar = {
        "density": number(0, 1),
        "accuracy": number(0, 1),
        "tail": maybe(number(2.01)),  # with fewer degrees of freedom there is no covariance
        "for_classes": flag(),
        "density_judged_at": number(0),
        "accuracy_judged_at": number(0),
    }

    def __init__(
        self,
        shrinkage: float | None = None,
        tail: float | None = None,
        *,
        for_classes: bool = True,
        foretells: bool = True,
    ) -> None:
        self.density = self.accuracy = _START if shrinkage is None else shrinkage
        self._tail = None if tail is None else finite(tail)
        self.for_classes = for_classes and shrinkage is None
        self._is_fixed, self._foretells = shrinkage is not None, foretells
        self._tails = TAILS if tail is None else (tail,)
        self._density_judged_at = self._accuracy_judged_at = 0.0

    @property
    def tail(self) -> float:
        """Degrees of freedom of the components, inf for normal ones."""
        return math.inf if self._tail is None else self._tail

    @property
    def classes(self) -> float:
        """lambda for predictions: the geometric mean of the best for densities and the best for normal classes."""
        return self.density if self.accuracy == self.density else math.sqrt(self.density * self.accuracy)

    def judge(self, statistics: SharedStatistics) -> None:
        """Chooses again where the data has grown by so much that the best shrinkage may have moved."""
        count = float(statistics.counts.sum())
        if count >= GRID_STEP * self._density_judged_at:
            self._judge_density(statistics, count)
        if not self.for_classes or not self._foretells:
            self.accuracy = min(1.0, _MORE * self.density) if self.for_classes else self.density
        elif count >= GRID_STEP * self._accuracy_judged_at:
            self._judge_accuracy(statistics, count)

    def _judge_density(self, statistics: SharedStatistics, count: float) -> None:
        """Chooses on the waiting block; by a closed form while there are too few samples to hold any out."""
        if statistics.n_pending >= _MIN_HELD_OUT:
            scatter, degrees, deviations = statistics.held_out()
            if len(deviations) >= _MIN_HELD_OUT:
                self._density_judged_at = count
                self._walk(scatter, degrees, deviations)
                return
        if self._density_judged_at == 0 and not self._is_fixed:
            self.density = oracle_shrinkage(statistics.within_scatter(), statistics.degrees_of_freedom)

    def _walk(self, scatter: Tensor, degrees: float, deviations: Tensor) -> None:
        scores: dict[float, tuple[float, float]] = {}

        def score(value: float) -> float:
            if value not in scores:
                scores[value] = held_out_log_likelihood(scatter, degrees, deviations, value, self._tails)
            return scores[value][0]

        if not self._is_fixed:
            self.density = choose_shrinkage(score, self.density)
        score(self.density)
        self._tail = finite(scores[self.density][1])

    def _judge_accuracy(self, statistics: SharedStatistics, count: float) -> None:
        if self._accuracy_judged_at == 0:
            self.accuracy = self.density
        if int((statistics.counts > 0).sum()) < 2:
            return
        if statistics.degrees_of_freedom < statistics.n_features:  # fewer samples than features foretell noise
            self.accuracy = min(1.0, _MORE * self.density)
            return
        self._accuracy_judged_at = count
        scatter, degrees = statistics.within_scatter(), statistics.degrees_of_freedom

        def score(value: float) -> float:
            if value >= 1:  # nothing of the covariance is left
                return -math.inf
            floor = value * mean_variance(scatter, degrees)
            cholesky, info = torch.linalg.cholesky_ex(shrunk_covariance(scatter.clone(), degrees, value).float())
            return -math.inf if int(info) else accuracy_of(statistics, cholesky, value, floor)

        self.accuracy = choose_shrinkage(score, self.accuracy)

    def join(self, other: CovarianceChoice, count: float, others: float) -> None:
        """Combines choices for two parts of the data, of `count` and `others` samples, until they are judged anew."""
        share = others / max(count + others, 1e-9)
        self.density = self.density ** (1 - share) * other.density**share
        mean = 1 / max((1 - share) / self.tail + share / other.tail, 1e-300)
        self._tail = finite(min(self._tails, key=lambda tail: abs(1 / tail - 1 / mean)))

    def judge_anew(self, statistics: SharedStatistics) -> None:
        """Chooses by the statistics alone, wherever the choices stood; the density's only where rows wait to judge it.

        Models that were merged in different orders have the same statistics, and so make the same choices.
        """
        self._density_judged_at, self._accuracy_judged_at = float(statistics.counts.sum()), 0.0
        if statistics.n_pending >= _MIN_HELD_OUT and not self._is_fixed:
            self.density, self._density_judged_at = _START, 0.0
        self.judge(statistics)


def accuracy_of(statistics: SharedStatistics, cholesky: Tensor, shrinkage: float, floor: float) -> float:
    """Returns the accuracy to expect of the components that have samples.

    `cholesky` is the factor of the shrunk covariance, (d, d), and `floor` what the shrinkage added to its diagonal.
    """
    present = statistics.counts > 0
    counts = statistics.counts[present].to(cholesky.device)
    sums = statistics.sums[present.to(cholesky.device)]
    means = (sums / counts[:, None] - sums.sum(dim=0) / counts.sum()).to(cholesky.dtype)
    degrees = statistics.degrees_of_freedom
    return expected_accuracy(cholesky, means, counts, degrees=degrees, shrinkage=shrinkage, floor=floor)
