"""The principal directions of another feature map: few features, so that every expert can keep a covariance."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from cndpm.experts.features.feature_map import FeatureMap
from cndpm.state import Keeps, part, tensor


class PrincipalFeatures(Keeps, FeatureMap):
    """Projections on the principal directions of the first memory's features, each at unit variance there.

    There are `n_features` of them, fewer where the memory has fewer samples.
    """

    kept: ClassVar = {
        "inner": part(),
        "mean": tensor("d", dtype=torch.float32),
        "projection": tensor("d", "n", dtype=torch.float32),
    }

    def __init__(self, inner: FeatureMap, n_features: int = 128) -> None:
        if n_features < 1:
            raise ValueError(f"n_features must be positive; got {n_features}")
        self.inner, self._most = inner, n_features
        self._mean: Tensor = torch.empty(0)
        self._projection: Tensor = torch.empty(0, 0)

    @property
    def fitted(self) -> bool:
        return self._mean.numel() > 0

    @property
    def n_features(self) -> int:
        self._require_fitted()
        return self._projection.shape[1]

    def fit(self, x: Tensor, *, generator: torch.Generator, labels: Tensor | None = None) -> None:
        if not self.inner.fitted:
            self.inner.fit(x, generator=generator, labels=labels)
        rows = self.inner(x).double()
        mean = rows.mean(dim=0)
        _, deviations, directions = torch.linalg.svd(rows - mean, full_matrices=False)
        n_features = max(1, min(self._most, int((deviations > 1e-6 * deviations[0]).sum())))
        scale = deviations[:n_features].clamp_min(1e-12) / max(1, len(rows) - 1) ** 0.5
        self._mean, self._projection = mean.float(), (directions[:n_features].T / scale).float().contiguous()

    def __call__(self, x: Tensor) -> Tensor:
        self._require_fitted()
        return (self.inner(x) - self._mean) @ self._projection

    @property
    def n_numbers_kept(self) -> int:
        return self.inner.n_numbers_kept + self._mean.numel() + self._projection.numel()
