"""Factors of the shared covariance: the exact one, and the one that answers use between two renewals.

The latter has the covariance as routing last saw it, and the means as they are now.

Factorising the covariance takes as long as learning thousands of samples, and a live stream is predicted before every
batch. So answers take the covariance of the latest renewal, shrunk for answers, and up-to-date means. This factor
depends on what was learned alone, never on when answers were asked for: a model that is asked often, one that is asked
once and one that was saved and loaded give the same bits.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.gaussian.densities import prior_strength
from cndpm.experts.gaussian.discrimination import expected_distance
from cndpm.experts.gaussian.factor import Factor, host_values
from cndpm.experts.gaussian.shrinkage import mean_variance, shrunk_covariance
from cndpm.experts.gaussian.statistics import SharedStatistics
from cndpm.threads import spread

_ROUNDING = 1e-9
"""Of the distance d that is expected: what a scatter of nothing but rounding may come to."""

_STRIP = 64
"""Rows of a product of triangles that are computed together."""

_GROUP = 8
"""Components whitened together; a group is whitened anew when one of them has changed."""


def widen(cholesky: Tensor, *, degrees: float, shrinkage: float, floor: float) -> Tensor:
    """Scales a factor (d, d) in place so that new samples are expected at squared distance d from their component."""
    if shrinkage < 1:
        distance = expected_distance(cholesky, degrees=degrees, shrinkage=shrinkage, floor=floor)
        if distance > _ROUNDING * len(cholesky):  # else nothing varies within components, and the width is not known
            cholesky *= math.sqrt(distance / len(cholesky))
    return cholesky


def log_determinant(cholesky: Tensor) -> float:
    """Returns log det Sigma, (d, d), from its factor L."""
    return 2 * float(cholesky.diagonal().double().log().sum())


def anchored(cholesky: Tensor, sums: Tensor, statistics: SharedStatistics, **facts: float) -> Factor:
    """Makes a factor of a covariance L (d, d) and of whitened sums L^-1 s_j (J, d), float64.

    The facts are its remaining fields, `kappa` being the most pseudo-samples that its prior may count as.
    """
    anchors = torch.nn.functional.pad(sums, (0, 0, 0, 2))
    values, counts = host_values(anchors), host_values(statistics.counts.to(sums.device))
    values[-1] = values[:-2].sum(axis=0) / max(float(counts.sum()), 1e-9)
    kappa = min(prior_strength(values[:-2], counts, values[-1]), facts.pop("kappa"))
    return Factor(cholesky=cholesky, anchors=anchors, kappa=kappa, **facts)


def factorise(statistics: SharedStatistics, *, shrinkage: float, tail: float, for_classes: bool) -> Factor:
    """Makes the factor of Sigma(lambda); for classes widened, with a prior that counts no more than one sample.

    The prior of the means is as wide as the data in every direction, while classes differ in few: it would pull all
    means towards each other.
    """
    with spread(statistics.n_features**3):
        scatter, degrees = statistics.within_scatter(), statistics.degrees_of_freedom
        floor = shrinkage * mean_variance(scatter, degrees)
        cholesky, info = torch.linalg.cholesky_ex(shrunk_covariance(scatter, degrees, shrinkage))
        del scatter
        if int(info) and shrinkage < 1:  # less shrinkage than rounding bears
            return factorise(statistics, shrinkage=min(1.0, 10 * shrinkage), tail=tail, for_classes=for_classes)
        if for_classes:
            cholesky = widen(cholesky, degrees=degrees, shrinkage=shrinkage, floor=floor)
        sums = torch.linalg.solve_triangular(cholesky, statistics.sums.T, upper=False).T
    return anchored(
        cholesky.contiguous(),  # row by row, as a state restores it: another layout would round otherwise
        sums,
        statistics,
        log_det=log_determinant(cholesky),
        kappa=1.0 if for_classes else math.inf,
        tail=tail,
        count=float(statistics.counts.sum()),
        degrees=degrees,
        shrinkage=shrinkage,
    )


class LaggingFactor:
    """Brings the covariance of a routing factor to another shrinkage, lambda', and its means up to date.

    Sigma(lambda') = a Sigma(lambda) + b I, so routing's own factor is all that is needed. For classes it is widened,
    with a prior that counts no more than one sample.
    """

    def __init__(self, routing: Factor, *, shrinkage: float, for_classes: bool) -> None:
        self.source = routing.cholesky
        self._facts = {"tail": routing.tail, "count": routing.count, "degrees": routing.degrees, "shrinkage": shrinkage}
        self._for_classes = for_classes
        with spread(len(routing.cholesky) ** 3):
            self._cholesky = _reshrunk(routing, shrinkage, for_classes=for_classes).to(routing.cholesky.dtype)
        self._facts["log_det"] = log_determinant(self._cholesky)
        self._changes = np.zeros(0, dtype=np.int64)
        self._sums = torch.zeros(0, len(self._cholesky), dtype=torch.float64, device=self._cholesky.device)
        self._current: Factor | None = None

    def factor(self, statistics: SharedStatistics) -> Factor:
        """Returns the factor with the means that the statistics have now; the same object while they do not change."""
        changes = statistics.changes  # replaced, never written to
        if self._current is None or (changes is not self._changes and not np.array_equal(changes, self._changes)):
            self._follow(statistics)
            kappa = 1.0 if self._for_classes else math.inf
            self._current = anchored(self._cholesky, self._sums, statistics, kappa=kappa, **self._facts)
        return self._current

    def _follow(self, statistics: SharedStatistics) -> None:
        """Whitens the sums anew, group by group, where one of a group has changed."""
        changes, sums = statistics.changes, statistics.sums
        if len(changes) <= _GROUP:
            rows = sums.to(self._cholesky.dtype)
            self._sums = torch.linalg.solve_triangular(self._cholesky, rows.T, upper=False).T.double()
            self._changes = changes
            return
        is_new = len(changes) != len(self._changes)
        whitened = torch.empty_like(sums) if is_new else self._sums.clone()  # a factor that was given out keeps its own
        moved = np.arange(len(changes)) if is_new else np.flatnonzero(changes != self._changes)
        for first in sorted(set((moved // _GROUP * _GROUP).tolist())):
            group = slice(first, first + _GROUP)
            rows = sums[group].to(self._cholesky.dtype)
            with spread(rows.numel() * rows.shape[1]):
                whitened[group] = torch.linalg.solve_triangular(self._cholesky, rows.T, upper=False).T
        self._sums, self._changes = whitened, changes


def _lower_square(lower: Tensor) -> Tensor:
    """Returns the lower triangle of L L', (d, d), strip by strip: a third of the multiplications of the whole."""
    square = torch.zeros_like(lower)
    for start in range(0, len(lower), _STRIP):
        stop = min(start + _STRIP, len(lower))
        torch.mm(lower[start:stop, :stop], lower[:stop, :stop].mT, out=square[start:stop, :stop])
    return square


def _reshrunk(routing: Factor, shrinkage: float, *, for_classes: bool) -> Tensor:
    """Returns the factor of the same covariance at another shrinkage, (d, d), float64."""
    lower = routing.cholesky.double()
    if routing.shrinkage >= 1:  # nothing of the data's covariance is left in it: routing's own serves
        return lower
    covariance = _lower_square(lower)
    variance = float(covariance.diagonal().mean())  # shrinkage keeps the mean variance
    share = (1 - shrinkage) / (1 - routing.shrinkage)
    covariance.mul_(share).diagonal().add_((shrinkage - share * routing.shrinkage) * variance)
    cholesky, info = torch.linalg.cholesky_ex(covariance)
    if int(info):  # less shrinkage than rounding bears: routing's own covariance serves
        return lower
    floor = shrinkage * variance
    return widen(cholesky, degrees=routing.degrees, shrinkage=shrinkage, floor=floor) if for_classes else cholesky
