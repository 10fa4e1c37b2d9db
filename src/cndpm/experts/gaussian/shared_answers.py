"""Answers of Gaussian components with one covariance: densities and draws. Nothing here changes what was learned.

Answers use the covariance that routing uses, shrunk for classes and scaled so that new samples are expected at distance
d from their component (:mod:`.prediction`); or an exact one, made on demand and kept until the statistics change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.experts.gaussian.densities import Posteriors, draw, near_log_prob
from cndpm.experts.gaussian.factor import Factor, host_values
from cndpm.experts.gaussian.prediction import LaggingFactor
from cndpm.experts.gaussian.statistics import BLOCK_SIZE

if TYPE_CHECKING:
    from cndpm.experts.gaussian.shared_covariance import SharedGaussians


class SharedAnswers:
    """Answers for components with one covariance, of features that a function gives."""

    def __init__(self, gaussians: SharedGaussians, features: Callable[[Samples], Tensor]) -> None:
        self._gaussians, self._features = gaussians, features
        self._lagging: LaggingFactor | None = None
        self._exact: Factor | None = None
        self._ready: Posteriors | None = None
        self._changes = np.zeros(0, dtype=np.int64)

    def factor(self, *, exact: bool) -> Factor:
        """Returns the factor for answers: of the statistics as they are, or with the covariance of the last renewal."""
        gaussians = self._gaussians
        choice, changes = gaussians.choice, gaussians.statistics.changes  # replaced, never written to
        if exact:
            if self._exact is None or changes is not self._changes:
                self._exact = gaussians.factorise(choice.classes, for_classes=choice.for_classes)
                self._changes = changes
            return self._exact
        routing = gaussians.routing()
        if self._lagging is None or self._lagging.source is not routing.cholesky:
            self._lagging = LaggingFactor(routing, shrinkage=choice.classes, for_classes=choice.for_classes)
        return self._lagging.factor(gaussians.statistics)

    def _posteriors(self, factor: Factor) -> Posteriors:
        """Returns the components with a factor, which is another one whenever they have changed."""
        if self._ready is None or self._ready.factor is not factor:
            self._ready = Posteriors.of(factor, sums=factor.sums, counts=self._gaussians.counts)
        return self._ready

    def log_prob(self, samples: Samples, *, exact: bool) -> Tensor:
        """Returns predictive log densities of every component, (B, J), on the device."""
        factor = self.factor(exact=exact)

        def score(chunk: Samples) -> Tensor:
            products = host_values(self.products(chunk, factor))
            return torch.as_tensor(self._posteriors(factor).log_prob(products[:, :1], products[:, 1:]))

        return samples.derive("scores", factor, score)

    def log_prob_near(self, samples: Samples, *, exact: bool) -> tuple[Tensor, Tensor]:
        """Returns the components that may explain each of B samples, (B, S), and their log densities, (B, S).

        Components whose means lie far away are left out where they are many; otherwise all are returned.
        """
        found = self._gaussians.nearest(samples)
        if found is None:
            scores = self.log_prob(samples, exact=exact)
            return torch.arange(scores.shape[1], device=scores.device).expand(len(scores), -1), scores
        factor = self.factor(exact=exact)
        return found, near_log_prob(factor, factor.whiten(self.shifted(samples)), found, self._gaussians.counts)

    def sample(self, component: int, n: int, generator: torch.Generator) -> Tensor:
        """Draws n feature rows from the predictive density of a component, (n, d), float64."""
        count, origin = float(self._gaussians.counts[component]), self._gaussians.statistics.origin
        return draw(self.factor(exact=True), component, count, n, generator) + origin

    def shifted(self, samples: Samples) -> Tensor:
        """Returns the features of samples, less the origin, (B, d), float64."""
        return self._gaussians.statistics.shift(self._features(samples))

    def whitened(self, samples: Samples, factor: Factor) -> Tensor:
        """Returns the rows that a factor makes of samples, L^-1 z, (B, d), float64."""
        return samples.derive("whitened for answers", factor.cholesky, lambda chunk: factor.whiten(self.shifted(chunk)))

    def products(self, samples: Samples, factor: Factor) -> Tensor:
        """Returns squared lengths of whitened rows and their products with the components' means, (B, 1 + J)."""
        means = self._posteriors(factor).means

        def multiply(chunk: Samples) -> Tensor:
            if chunk.x.shape[0] <= BLOCK_SIZE:
                return _with_squares(self.whitened(chunk, factor), means)
            z = self._features(chunk)
            # A GPU solves for many rows in hardly more time than for few.
            parts = torch.split(z, BLOCK_SIZE if z.device.type == "cpu" else 4 * BLOCK_SIZE)
            shift = self._gaussians.statistics.shift
            return torch.cat([_with_squares(factor.whiten(shift(part)), means) for part in parts])

        return samples.derive("products", factor, multiply)


def _with_squares(rows: Tensor, means: Tensor) -> Tensor:
    """Returns squared lengths of rows (B, d) and their products with means (J, d), (B, 1 + J)."""
    values, products = host_values(rows), rows @ means.T
    if isinstance(values, Tensor):
        return torch.cat([rows.square().sum(dim=1, keepdim=True), products], dim=1)
    squares = np.add.reduce(values * values, axis=1, keepdims=True)
    return torch.from_numpy(np.concatenate([squares, products.numpy()], axis=1))
