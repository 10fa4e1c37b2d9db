"""Gaussians with one covariance, in plain loops: what the oracle of the default is made of.

Every row that was learned is kept with its responsibilities, and everything is computed from all of them whenever it is
needed: no sums that are carried along, no windows, no caches, one component after the other, in double precision.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from cndpm.experts.gaussian.discrimination import expected_accuracy, expected_distance
from cndpm.experts.gaussian.factor import log_elliptical
from cndpm.experts.gaussian.shrinkage import (
    GRID_STEP,
    choose_shrinkage,
    held_out_log_likelihood,
    mean_variance,
    oracle_shrinkage,
    shrunk_covariance,
)

__all__ = ["Component", "PlainFactor", "PlainGaussians", "Row"]

BLOCK = 512
"""Rows that are kept apart to judge a shrinkage by count among the others when there are so many."""

_MIN_APART = 8
_FIFTH = 5

Component = tuple[int, int]
"""An expert and a label."""

Row = tuple[Tensor, dict[Component, float]]
"""Features (d,), and the responsibility of every component that has some."""

Sums = dict[Component, tuple[float, Tensor]]
"""The weight of all rows of a component, and their weighted sum (d,)."""


class PlainFactor(NamedTuple):
    """A covariance with the prior of the means.

    Attributes:
        whitener: L^-1 of Sigma = L L', (d, d).
        mean: m0, (d,).
        kappa: Pseudo-samples that the prior counts as.
        tail: Degrees of freedom of the components' tails, inf for normal ones.
        shrinkage: lambda.
        scatter: The scatter that Sigma was made of, (d, d).
        degrees: Degrees of freedom behind it.
        n_samples: Weight of all rows behind it.

    Example:
        >>> eye, zeros = torch.eye(2).double(), torch.zeros(2).double()
        >>> factor = PlainFactor(eye, zeros, 1.0, math.inf, 0.1, eye, 9.0, 10.0)
        >>> factor.log_density(zeros[None], 3.0, zeros)
        tensor([-2.0610], dtype=torch.float64)
    """

    whitener: Tensor
    mean: Tensor
    kappa: float
    tail: float
    shrinkage: float
    scatter: Tensor
    degrees: float
    n_samples: float

    def log_density(self, z: Tensor, n: float, total: Tensor | float) -> Tensor:
        """Returns the log density of rows under a component; "new" is one without samples.

        Args:
            z: Rows, (B, d).
            n: Samples of the component.
            total: Their sum, (d,).
        """
        mean = (self.kappa * self.mean + total) / (self.kappa + n)
        return self._at_distance((self.whitener @ (z - mean).T).square().sum(dim=0), n)

    def typical_margin(self, n: float, total: Tensor) -> float:
        """Returns log p(z | j) - log p(z | new) of a sample at squared distance d from the mean of its component.

        Args:
            n: Samples of the component.
            total: Their sum, (d,).
        """
        apart = (self.whitener @ (total - n * self.mean) / (self.kappa + n)).square().sum()
        own = torch.full_like(apart, len(self.mean))
        return float(self._at_distance(own, n) - self._at_distance(own + apart, 0.0))

    def _at_distance(self, squared: Tensor, n: float) -> Tensor:
        log_det, scale = -2 * float(self.whitener.diagonal().log().sum()), 1 + 1 / (self.kappa + n)
        return log_elliptical(squared, log_det, len(self.mean), squared.new_tensor(scale), self.tail)


class PlainGaussians:
    """One Gaussian for every label of every expert.

    Args:
        n_features: d.

    Attributes:
        rows: All that was learned.
        components: In the order of their arrival: what is foretold by random draws depends on it.
        n_apart: How many of them, the latest, judge the next shrinkage.
        routing: The covariance of the last renewal.

    Example:
        >>> gaussians = PlainGaussians(2)
        >>> gaussians.found([(z, {(0, 3): 1.0}) for z in torch.randn(20, 2).double()])
        >>> gaussians.sums()[0, 3][0]
        20.0
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self.rows: list[Row] = []
        self.components: list[Component] = []
        self.n_apart = 0
        self.routing: PlainFactor | None = None
        self.density, self.accuracy, self.tail = 1e-2, 1e-2, math.inf
        self._density_judged_at = self._accuracy_judged_at = 0.0
        self._before: dict[Component, float] | None = None

    def sums(self) -> Sums:
        """Returns weight and weighted sum of every component."""
        sums: Sums = {c: (0.0, torch.zeros(self.n_features, dtype=torch.float64)) for c in self.components}
        for z, shares in self.rows:
            for component, share in shares.items():
                n, total = sums[component]
                sums[component] = (n + share, total + share * z)
        return sums

    def found(self, rows: list[Row]) -> None:
        """Learns what a new expert is made of; every fifth row comes last, apart from all others."""
        apart = rows[_FIFTH - 1 :: _FIFTH]
        self._keep([row for i, row in enumerate(rows) if i % _FIFTH != _FIFTH - 1] + apart)
        self.n_apart = len(apart)
        self._renew_if_due(n_samples=0, share=0.1)

    def add(self, rows: list[Row]) -> None:
        """Learns a batch."""
        self._keep(rows)
        self.n_apart += len(rows)
        self._renew_if_due(n_samples=self.n_features, share=0.05)
        if self.n_apart >= BLOCK:
            self.n_apart = 0

    def merge(self, expert: int, into: int) -> None:
        """Gives the rows of an expert to another one, and renews routing.

        Args:
            expert: The one that goes.
            into: The one that takes them.
        """
        self._remember_margins()
        for _, shares in self.rows:
            for component in [component for component in shares if component[0] == expert]:
                share, target = shares.pop(component), (into, component[1])
                shares[target] = shares.get(target, 0.0) + share
        renamed = [(into, label) if owner == expert else (owner, label) for owner, label in self.components]
        self.components = [
            c for c, old in zip(renamed, self.components, strict=True) if c == old or c not in self.components
        ]
        assert self._before is not None
        for component in [component for component in self._before if component[0] == expert]:
            self._before.setdefault((into, component[1]), self._before.pop(component))
        self.n_apart = 0
        self.routing = self._factor(*self._scatter(), self.density, for_classes=False)

    def _keep(self, rows: list[Row]) -> None:
        self.rows += rows
        self.components += sorted({component for _, shares in rows for component in shares} - set(self.components))

    def margin_drift(self) -> dict[Component, float] | None:
        """Returns by how much typical margins have moved where routing was renewed since this was last asked."""
        before, self._before = self._before, None
        if before is None or self.routing is None:
            return None
        sums = self.sums()
        return {c: self.routing.typical_margin(*sums[c]) - margin for c, margin in before.items()}

    def answering(self, *, exact: bool) -> PlainFactor:
        """Returns the factor for answers: means as they are, the covariance of all rows or of the last renewal."""
        assert self.routing is not None
        scatter, degrees = self._scatter() if exact else (self.routing.scatter, self.routing.degrees)
        if not exact and self.routing.shrinkage >= 1:  # nothing of the covariance is left: routing's own serves
            return self._factor(scatter, degrees, self.routing.shrinkage, for_classes=True)
        return self._factor(scatter, degrees, math.sqrt(self.density * self.accuracy), for_classes=True)

    # The covariance

    def _factor(self, scatter: Tensor, degrees: float, shrinkage: float, *, for_classes: bool) -> PlainFactor:
        """Returns the factor of a shrunk covariance with the prior of the means as they are.

        For classes it is scaled so that new samples are expected at squared distance d from their component, and the
        prior counts no more than one sample.
        """
        floor = shrinkage * mean_variance(scatter, degrees)
        cholesky = torch.linalg.cholesky(shrunk_covariance(scatter.clone(), degrees, shrinkage))
        if for_classes and shrinkage < 1:
            distance = expected_distance(cholesky, degrees=degrees, shrinkage=shrinkage, floor=floor)
            cholesky = cholesky * math.sqrt(distance / self.n_features)
        whitener, sums = torch.linalg.inv(cholesky), list(self.sums().values())
        count = sum(n for n, _ in sums)
        mean = torch.stack([total for _, total in sums]).sum(dim=0) / count
        kappa = _prior_strength(whitener, sums, mean)
        kappa = min(kappa, 1.0) if for_classes else kappa
        return PlainFactor(whitener, mean, kappa, self.tail, shrinkage, scatter, degrees, count)

    def _scatter(self) -> tuple[Tensor, float]:
        return _scatter_about(self.rows, self.sums())

    def _renew_if_due(self, *, n_samples: int, share: float) -> None:
        """Renews routing once `n_samples` and a `share` more have arrived since."""
        count = sum(n for n, _ in self.sums().values())
        stale = 0.0 if self.routing is None else self.routing.n_samples
        if self.routing is None or count - stale >= max(n_samples, share * stale) - 1e-6:  # whatever rounding adds
            self._judge(count)
            self.n_apart = 0
            self._remember_margins()
            self.routing = self._factor(*self._scatter(), self.density, for_classes=False)

    def _remember_margins(self) -> None:
        if self.routing is not None and self._before is None:
            self._before = {c: self.routing.typical_margin(n, total) for c, (n, total) in self.sums().items()}

    def _judge(self, count: float) -> None:
        """Chooses shrinkages and tails again, where the data has grown by a step of the grid since."""
        if count >= GRID_STEP * self._density_judged_at:
            self._judge_density(count)
        if count >= GRID_STEP * self._accuracy_judged_at:
            self.accuracy = self.accuracy if self._accuracy_judged_at else self.density
            if len(self.sums()) > 1:
                self._judge_accuracy(count)

    def _judge_accuracy(self, count: float) -> None:
        """By the accuracy that is foretold; too few samples for that take half a decade more than the density."""
        scatter, degrees = self._scatter()
        if degrees < len(scatter):
            self.accuracy = min(1.0, 10 * self.density)
        else:
            self._accuracy_judged_at = count
            self.accuracy = choose_shrinkage(self._expected_accuracy, self.accuracy)

    def _judge_density(self, count: float) -> None:
        """By the rows that are apart; by a closed form while they are too few."""
        scatter, degrees, deviations = self._apart()
        if len(deviations) >= _MIN_APART:
            self._density_judged_at = count
            self.density = choose_shrinkage(
                lambda value: held_out_log_likelihood(scatter, degrees, deviations, value)[0], self.density
            )
            self.tail = held_out_log_likelihood(scatter, degrees, deviations, self.density)[1]
        elif not self._density_judged_at:
            self.density = oracle_shrinkage(*self._scatter())

    def _apart(self) -> tuple[Tensor, float, Tensor]:
        """Returns scatter and degrees of freedom without the rows that are apart, and the deviations of these, (N, d).

        Each is taken out, whole, of the component that has most of it.
        """
        n_seen, sums = len(self.rows) - self.n_apart, self.sums()
        apart = [(z, max(shares, key=lambda c: shares[c]), sum(shares.values())) for z, shares in self.rows[n_seen:]]
        for z, owner, weight in apart:
            n, total = sums[owner]
            sums[owner] = (n - weight, total - weight * z)
        deviations = [z - sums[owner][1] / sums[owner][0] for z, owner, _ in apart if sums[owner][0] > 0.5]
        left = {component: (n, total) for component, (n, total) in sums.items() if n > 1e-9}
        return *_scatter_about(self.rows[:n_seen], left), torch.stack(deviations) if deviations else torch.zeros(0)

    def _expected_accuracy(self, shrinkage: float) -> float:
        if shrinkage >= 1:
            return -math.inf
        sums, (scatter, degrees) = self.sums(), self._scatter()
        floor = shrinkage * mean_variance(scatter, degrees)
        cholesky = torch.linalg.cholesky(shrunk_covariance(scatter, degrees, shrinkage))
        counts = torch.tensor([n for n, _ in sums.values()], dtype=torch.float64)
        means = torch.stack([total / n for n, total in sums.values()])
        means = means - (counts @ means) / counts.sum()
        return expected_accuracy(cholesky, means, counts, degrees=degrees, shrinkage=shrinkage, floor=floor)


def _scatter_about(rows: list[Row], sums: Sums) -> tuple[Tensor, float]:
    """Returns sum_i w_i z_i z_i' - sum_j s_j s_j' / n_j, (d, d), and its degrees of freedom."""
    z = torch.stack([z for z, _ in rows])
    weights = torch.tensor([sum(shares.values()) for _, shares in rows], dtype=torch.float64)
    scatter = (z * weights[:, None]).T @ z
    for n, total in sums.values():
        scatter = scatter - torch.outer(total, total) / n
    return scatter, max(1.0, sum(n for n, _ in sums.values()) - len(sums))


def _prior_strength(whitener: Tensor, sums: list[tuple[float, Tensor]], mean: Tensor) -> float:
    """Returns kappa0: the inverse variance of the whitened means, at most a tenth of a component's samples."""
    if len(sums) < 2:
        return 1.0
    spread = [float((whitener @ (total / n - mean)).square().mean()) - 1 / n for n, total in sums]
    variance = min(1e6, max(1e-6, sum(spread) / (len(sums) - 1)))
    return min(1 / variance, 0.1 * sum(n for n, _ in sums) / len(sums))
