"""Gaussian experts for regression: one joint Gaussian of features and targets per expert.

Each expert has a normal-inverse-Wishart prior over the mean and covariance of the row (features, targets). The same few
sums then give everything in closed form: the joint evidence that routes, the marginal density of x that gates, and the
conditional of y given x that predicts, all Student's t. The conditional mean is a Bayesian linear regression on the
features; random Fourier features make it one in a function space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.bank import Evidence, Provisional
from cndpm.experts.chunks import Samples
from cndpm.experts.features import FeatureMap, IdentityFeatures
from cndpm.experts.gaussian.additive import AdditiveBank
from cndpm.experts.gaussian.own_covariance import OwnGaussians, log_student_t
from cndpm.experts.gaussian.provisional import kernel_model
from cndpm.mixture.redundancy import best_of_sources
from cndpm.state import State, copied


class GaussianRegressionBank(AdditiveBank[OwnGaussians]):
    """Experts for targets y (B, n_outputs), float; few features, because every expert keeps a covariance of its own."""

    def __init__(self, feature_map: FeatureMap, *, seed: int = 0, device: torch.device | str = "cpu") -> None:
        super().__init__(feature_map, seed=seed, device=device)
        self._targets = IdentityFeatures()
        self._provisional: tuple[Samples, Tensor | None, Provisional] | None = None

    @property
    def counts(self) -> Tensor:
        return torch.zeros(0, dtype=torch.float64) if self._gaussians is None else self._gaussians.counts

    def admit(self, n_classes: int) -> None:
        """Does nothing: targets are numbers."""

    def evidence(self, samples: Samples, y: Tensor | None) -> Evidence:
        log_rows = self._log_rows(samples, y)
        return Evidence(self.counts.log() + log_rows[:, :-1], log_rows[:, -1])

    def log_density(self, samples: Samples, *, exact: bool = True) -> Tensor:
        return self._log_rows(samples, None)[:, :-1].to(self.device)

    def predictive(self, samples: Samples, *, exact: bool = True) -> Tensor:
        z = self._values(samples)
        d = z.shape[1]
        degrees, location, cholesky = (value[:-1] for value in self.ready().predictive())
        centred = (z[:, None] - location[:, :d]).permute(1, 2, 0)
        whitened = torch.linalg.solve_triangular(cholesky[:, :d, :d], centred, upper=False)
        mean = location[:, d:, None] + cholesky[:, d:, :d] @ whitened
        inflation = (degrees[:, None] + whitened.square().sum(dim=1)) / (degrees[:, None] + d - 2)
        variance = cholesky[:, d:, d:].square().sum(dim=2)[:, :, None] * inflation[:, None]
        shift, scale = self._targets.shift.double(), self._targets.scale.double()
        means = mean.permute(2, 0, 1) * scale + shift
        return torch.stack([means, variance.permute(2, 0, 1) * scale.square()], dim=2).to(self.device)

    def provisional(self, samples: Samples, y: Tensor | None, *, exact: bool = True) -> Provisional:
        known = self._provisional  # samples are another object whenever the memory has changed
        if known is None or known[0] is not samples or known[1] is not y:
            model = kernel_model(self.feature_map, samples.x, y if y is None else y.to(samples.x.device), 0)
            known = self._provisional = (samples, y, model)
        return known[2]

    def learn(self, samples: Samples, y: Tensor | None, responsibilities: Tensor, *, counted: bool = True) -> None:
        self.ready().found(torch.cat([self._values(samples), self._standardised(y)], dim=1), responsibilities)

    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        rows = self.ready().sample(k, n, generator)
        d = self.feature_map.n_features
        return self.feature_map.inverse(rows[:, :d].to(self.device)), self._targets.inverse(rows[:, d:]).to(self.device)

    # The contract of additive banks

    def _n_own_numbers(self) -> int:
        return self._targets.n_numbers_kept

    def _own_state(self) -> State:
        return {"targets": self._targets.state_dict()}

    def _load_own_state(self, state: State) -> None:
        self._targets.load_state_dict(copied(state["targets"], "cpu"))

    def _new_gaussians(self, rows: Tensor) -> OwnGaussians:
        return OwnGaussians(rows, self._values)

    def _restored_gaussians(self, state: State) -> OwnGaussians:
        d = self.feature_map.n_features + self._targets.n_features
        gaussians = OwnGaussians(torch.zeros(1, d, dtype=torch.float64), self._values)
        gaussians.load_state_dict(state)
        return gaussians

    def _taken(self, x: Tensor, y: Tensor | None) -> Tensor:
        if y is None or y.dim() != 2 or len(y) != len(x) or not len(x):
            received = None if y is None else tuple(y.shape)
            raise ValueError(f"regression takes targets (batch, n_outputs) beside x, at least one; got {received}")
        return y.detach().to("cpu", copy=True)

    def _make_expert(self, samples: Samples, y: Tensor) -> None:
        if self._gaussians is None:
            self._freeze(samples.x, labels=None)
            if self._template is None:
                self._targets.fit(y, generator=self._generator)
        rows = torch.cat([self._values(samples), self._standardised(y)], dim=1)
        gaussians = self._begin(rows)
        gaussians.add_components(1)
        weights = torch.zeros(len(samples), len(self.counts), dtype=torch.float64)
        weights[:, -1] = 1
        gaussians.found(rows, weights)

    def _merge(self, k: int, into: int) -> None:
        self.ready().merge_components([(k, into)], [j for j in range(len(self.counts)) if j != k])

    # Merging: experts are sums, so nothing is lost

    def _append(self, other: Self) -> None:
        self.ready().extend(other.ready())

    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        pairs = [(k, group[0]) for group in groups for k in group[1:]]
        if pairs:
            self.ready().merge_components(pairs, [group[0] for group in groups])

    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        margins = self.ready().typical_margins(np.arange(len(self.counts))) + self.counts.log()[:, None]
        best = torch.from_numpy(best_of_sources(margins.numpy(), np.array(sources)))
        return ((margins >= levels[:, None]) & best).double()

    def affinity(self) -> Tensor:
        return self.ready().affinity()

    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        """Does nothing: targets are numbers."""

    def _own_representation(self) -> State:
        return self._own_state()

    # Inside. With few features the host is the better place.

    def _values(self, samples: Samples) -> Tensor:
        """Returns features (B, d), float64, on the host."""
        return samples.derive("values", self._frozen, lambda chunk: self._features(chunk).cpu().double())

    def _standardised(self, y: Tensor | None) -> Tensor:
        if y is None:
            raise ValueError("regression experts learn from targets (batch, n_outputs); got None")
        return self._targets(y.cpu()).double()

    def _log_rows(self, samples: Samples, y: Tensor | None) -> Tensor:
        """Returns the log density of (x, y), or of x alone, under every expert and, last, the prior: (B, K + 1)."""
        if self._gaussians is None:
            return torch.zeros(len(samples), 1, dtype=torch.float64)
        z = self._values(samples)
        degrees, location, cholesky = self._gaussians.predictive()
        if y is None:
            d = z.shape[1]
            return log_student_t(z, degrees, location[:, :d], cholesky[:, :d, :d]) - self._log_volume
        rows = torch.cat([z, self._standardised(y)], dim=1)
        # The density in the units of x and y: the scales are the Jacobian.
        log_volume = self._log_volume + self._targets.log_volume
        return log_student_t(rows, degrees, location, cholesky) - log_volume
