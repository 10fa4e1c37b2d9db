"""Rows that someone else makes of samples, standardised on the first memory."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from cndpm.experts.features.feature_map import FeatureMap
from cndpm.experts.features.vectors import IdentityFeatures


class StandardisedFeatures(FeatureMap):
    """Standardises rows that are given by a module or a function; abstract."""

    def __init__(self) -> None:
        self._standardised = IdentityFeatures()

    @property
    def fitted(self) -> bool:
        return self._standardised.fitted

    @property
    def n_features(self) -> int:
        return self._standardised.n_features

    def fit(self, x: Tensor, *, generator: torch.Generator, labels: Tensor | None = None) -> None:
        self._standardised.fit(self._rows(x), generator=generator)

    def __call__(self, x: Tensor) -> Tensor:
        self._require_fitted()
        return self._standardised(self._rows(x))

    @abstractmethod
    def _rows(self, x: Tensor) -> Tensor:
        """Returns rows (B, d) of samples (B, *input_shape)."""
