"""Feature maps for vectors: the standardised values themselves, random Fourier features, principal directions."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from cndpm.experts.features.feature_map import FeatureMap
from cndpm.state import Keeps, State, StateError, listed, maybe, part, tensor, whole

_FLOATS = (torch.float32, torch.float64)


class IdentityFeatures(Keeps, FeatureMap):
    """Flattened samples, each coordinate standardised by the first memory's mean and deviation.

    Invertible, so that an expert can sample through it. Coordinates that do not vary in the first memory are only
    centred.
    """

    keeps_x = True
    kept: ClassVar = {
        "shape": maybe(listed(whole(1))),
        "shift": tensor("d", dtype=_FLOATS),
        "scale": tensor("d", dtype=_FLOATS),
    }

    def __init__(self) -> None:
        self._shape: list[int] | None = None
        self.shift: Tensor = torch.empty(0)  # mean that is subtracted from each coordinate, (d,)
        self.scale: Tensor = torch.empty(0)  # deviation that it is divided by, (d,)

    @property
    def fitted(self) -> bool:
        return self._shape is not None

    @property
    def n_features(self) -> int:
        self._require_fitted()
        return self.shift.numel()

    def fit(self, x: Tensor, *, generator: torch.Generator, labels: Tensor | None = None) -> None:
        rows = x.flatten(1).double()
        deviation = rows.std(dim=0, correction=0)
        mean, scale = rows.mean(dim=0), torch.where(deviation > 1e-6, deviation, 1.0)
        self._shape, self.shift, self.scale = list(x.shape[1:]), mean.float(), scale.float()

    def __call__(self, x: Tensor) -> Tensor:
        self._require_fitted()
        return (x.flatten(1).float() - self.shift) / self.scale

    @property
    def log_volume(self) -> float:
        return float(self.scale.double().log().sum())

    def inverse(self, features: Tensor) -> Tensor:
        self._require_fitted()
        rows = features.to(self.shift.dtype) * self.scale + self.shift
        return rows.reshape(-1, *(self._shape or ()))

    def _admit(self, state: State) -> None:
        shape, d = state["shape"], len(state["scale"])
        if shape is not None and math.prod(shape) != d:
            raise StateError(f"'shape' must be that of {d} values; got {str(shape)[:80]}")
        if not (state["scale"] > 0).all():
            raise StateError("'scale' must hold positive numbers")


class FourierFeatures(Keeps, FeatureMap):
    """Random Fourier features of the standardised sample (Rahimi and Recht, 2007).

    z = sqrt(2) cos(W x + b) with W ~ N(0, 1 / s^2), b ~ U(0, 2 pi): a Gaussian over z is a Gaussian-kernel method over
    x. The scale s is the median distance between samples of the first memory. The standardised sample itself comes
    before the random features, so the map can be undone, and what is linear in x is linear in the features.
    """

    kept: ClassVar = {
        "standardised": part(),
        "weight": tensor("d", "waves", dtype=_FLOATS),
        "phase": tensor("waves", dtype=_FLOATS),
    }

    def __init__(self, n_features: int = 512) -> None:
        if n_features < 1:
            raise ValueError(f"n_features must be positive; got {n_features}")
        self._n_features = n_features
        self._standardised = IdentityFeatures()
        self._weight: Tensor = torch.empty(0, 0)
        self._phase: Tensor = torch.empty(0)
        self._in_double: tuple[Tensor, Tensor] | None = None

    @property
    def fitted(self) -> bool:
        return self._standardised.fitted

    @property
    def n_features(self) -> int:
        return self._n_features + self._standardised.n_features

    @property
    def n_inputs(self) -> int:
        """Values of one sample."""
        return self._standardised.n_features

    def fit(self, x: Tensor, *, generator: torch.Generator, labels: Tensor | None = None) -> None:
        self._standardised.fit(x, generator=generator)
        rows = self._standardised(x[:1000])
        median = torch.pdist(rows).median() if len(rows) > 1 else rows.new_tensor(float(rows.shape[1])).sqrt()
        weight = torch.randn(rows.shape[1], self._n_features, generator=generator)
        phase = 2 * math.pi * torch.rand(self._n_features, generator=generator)
        self._weight = weight.to(rows) / median.clamp_min(1e-6)
        self._phase = phase.to(rows)

    def __call__(self, x: Tensor) -> Tensor:
        self._require_fitted()
        rows = self._standardised(x)
        return torch.cat([rows, self.waves(rows)], dim=1)

    def waves(self, rows: Tensor) -> Tensor:
        """Returns the random features, (n, n_features), of rows that are standardised already, (n, d)."""
        # In double precision, so that a row's features do not depend on the rows beside it.
        if self._in_double is None or self._in_double[0] is not self._weight:
            self._in_double = (self._weight, self._weight.double())
        angle = (rows.double() @ self._in_double[1]).add_(self._phase)
        return angle.cos_().mul_(math.sqrt(2)).float()

    def inverse(self, features: Tensor) -> Tensor:
        return self._standardised.inverse(features[:, : self._standardised.n_features])

    def _admit(self, state: State) -> None:
        if (d := len(state["weight"])) != len(state["standardised"].get("shift", ())):
            raise StateError(f"'weight' is for rows of {d} values, and 'standardised' for others")


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
