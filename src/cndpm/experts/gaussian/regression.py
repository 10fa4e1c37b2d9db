"""Gaussian experts for regression: one joint Gaussian of features and targets per expert.

Each expert has a normal-inverse-Wishart prior over the mean and covariance of the row (features, targets). The same few
sums then give everything in closed form: the joint evidence that routes, the marginal density of x that gates, and the
conditional of y given x that predicts, all Student's t. The conditional mean is a Bayesian linear regression on the
features; random Fourier features make it one in a function space.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.experts.bank import Provisional
from cndpm.experts.features import FeatureMap, IdentityFeatures
from cndpm.experts.gaussian.additive import AdditiveBank
from cndpm.experts.gaussian.conjugate import log_student_t
from cndpm.experts.gaussian.own_covariance import OwnGaussians
from cndpm.experts.gaussian.provisional import kernel_model
from cndpm.experts.gaussian.rows import FeatureRows
from cndpm.experts.gaussian.transfer import to_device
from cndpm.state import State

__all__ = ["GaussianRegressionBank"]


class GaussianRegressionBank(AdditiveBank[OwnGaussians]):
    """Experts for targets y (B, n_outputs), float.

    Args:
        feature_map: Of x; few features, because every expert keeps a covariance of its own.
        seed: Of the feature map's random choices.
        device: Where statistics live and computation runs.

    Example:
        >>> bank = GaussianRegressionBank(IdentityFeatures())
        >>> bank.start_expert(x_memory, y_memory)
        >>> bank.train_expert(1)
        True
        >>> mean, variance = bank.predictive(x)[:, 0].unbind(dim=1)
    """

    def __init__(self, feature_map: FeatureMap, *, seed: int = 0, device: torch.device | str = "cpu") -> None:
        super().__init__(feature_map, seed=seed, device=device)
        self._targets = IdentityFeatures()

    @property
    def n_experts(self) -> int:
        """K."""
        return 0 if self._gaussians is None else self._gaussians.n_components

    @property
    def evidence_device(self) -> torch.device:
        """The bank's own device."""
        return self.device

    def log_joint(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log p(x, y | k), (B, K), float64."""
        return self._log_rows(x, y)[:, :-1]

    def log_joint_new(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log p(x, y) under the prior predictive density, (B,)."""
        return self._log_rows(x, y)[:, -1]

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x | k), (B, K), float64: the marginal of the joint Student's t."""
        return self._log_rows(x, None)[:, :-1]

    def predictive(self, x: Tensor) -> Tensor:
        """Mean and variance of the targets by every expert, (B, K, 2, n_outputs), in the targets' own units."""
        z = self._features(x)
        d = z.shape[1]
        degrees, location, cholesky = (value[:-1] for value in self._ready().predictive())
        centred = (z[:, None] - location[:, :d]).permute(1, 2, 0)
        whitened = torch.linalg.solve_triangular(cholesky[:, :d, :d], centred, upper=False)
        mean = location[:, d:, None] + cholesky[:, d:, :d] @ whitened
        inflation = (degrees[:, None] + whitened.square().sum(dim=1)) / (degrees[:, None] + d - 2)
        variance = cholesky[:, d:, d:].square().sum(dim=2)[:, :, None] * inflation[:, None]
        scale = self._target_scale().double()
        shift = self._targets.inverse(torch.zeros_like(scale)[None]).double()
        means = mean.permute(2, 0, 1) * scale + shift
        return torch.stack([means, variance.permute(2, 0, 1) * scale.square()], dim=2)

    def provisional(self, x: Tensor, y: Tensor | None) -> Provisional:
        """Kernels around the stored samples."""
        return kernel_model(self.feature_map, x, y, 0)

    def learn(self, x: Tensor, y: Tensor | None, responsibilities: Tensor) -> None:
        """Adds the weighted samples to the statistics."""
        rows = torch.cat([self._features(x), self._standardised(y)], dim=1)
        self._ready().add(FeatureRows(rows), responsibilities.to(self.device))

    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """n draws of (x, y) from expert k, through the inverse of the feature map where it has one."""
        rows = self._ready().sample(k, n, generator)
        d = self.feature_map.n_features
        return self.feature_map.inverse(rows[:, :d]), self._targets.inverse(rows[:, d:])

    @property
    def n_numbers_kept(self) -> int:
        """Statistics, feature map and the targets' standardisation."""
        return self.n_parameters + self.feature_map.n_numbers_kept + self._targets.n_numbers_kept

    def state_dict(self) -> State:
        """The targets' standardisation beside the rest."""
        return {**super().state_dict(), "targets": self._targets.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Restores the above."""
        super().load_state_dict(state)
        self._targets.load_state_dict(to_device(state["targets"], self.device))

    def _new_gaussians(self, rows: Tensor) -> OwnGaussians:
        return OwnGaussians(rows)

    def _taken(self, x: Tensor, y: Tensor | None) -> Tensor:
        if y is None or y.dim() != 2 or len(y) != len(x) or not len(x):
            received = None if y is None else tuple(y.shape)
            raise ValueError(f"regression takes targets (batch, n_outputs) beside x, at least one; got {received}")
        return y.detach().to(self.device, copy=True)

    def _found(self, x: Tensor, y: Tensor) -> None:
        if not self.feature_map.fitted:
            self.feature_map.fit(x, generator=self._generator)
        if not self._targets.fitted:
            self._targets.fit(y, generator=self._generator)
        rows = torch.cat([self._features(x), self._standardised(y)], dim=1)
        if self._gaussians is None:
            self._gaussians = self._new_gaussians(rows)
        self._gaussians.add_components(1)
        weights = torch.zeros(len(x), self.n_experts, dtype=torch.float64, device=self.device)
        weights[:, -1] = 1
        self._gaussians.found(rows, weights)

    def _merge(self, k: int, into: int) -> None:
        self._ready().merge_components([(k, into)], [j for j in range(self.n_experts) if j != k])

    def _features(self, x: Tensor) -> Tensor:
        return self._rows(x).z.double()

    def _standardised(self, y: Tensor | None) -> Tensor:
        if y is None:
            raise ValueError("regression experts learn from targets (batch, n_outputs); got None")
        return self._targets(y.to(self.device)).double()

    def _target_scale(self) -> Tensor:
        scale: Tensor = self._targets.state_dict()["scale"]
        return scale

    def _log_rows(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log density of (x, y), or of x alone, under every expert and, last, the prior: (B, K + 1)."""
        if self._gaussians is None:
            return torch.zeros(len(x), 1, dtype=torch.float64, device=self.device)
        z = self._features(x)
        degrees, location, cholesky = self._gaussians.predictive()
        if y is None:
            d = z.shape[1]
            return log_student_t(z, degrees, location[:, :d], cholesky[:, :d, :d]) - self.feature_map.log_volume
        rows = torch.cat([z, self._standardised(y)], dim=1)
        # The density in the units of x and y: the scales are the Jacobian.
        log_volume = self.feature_map.log_volume + self._targets.log_volume
        return log_student_t(rows, degrees, location, cholesky) - log_volume
