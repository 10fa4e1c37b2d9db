"""Gaussians over what waits in the memory, comparable with the experts', until sleep makes an expert of it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from cndpm.experts.features import FeatureMap, IdentityFeatures
from cndpm.experts.gaussian.rows import FeatureRows
from cndpm.experts.gaussian.shared import SharedGaussians
from cndpm.experts.parts import gaussian_kernel_log_prob, nearest_neighbour_variance
from cndpm.experts.provisional import KernelModel

__all__ = ["ProvisionalGaussians", "kernel_model"]

_LOG_FLOOR = -50.0


class ProvisionalGaussians:
    """One Gaussian per label of the memory, with the experts' covariance and prior.

    Args:
        gaussians: The experts' components; they are not changed.
        feature_map: Fitted.
        x: The stored samples, (M, ...).
        y: Class indices (M,); zeros where there are no labels.
        n_classes: Width of :meth:`predictive`.
    """

    def __init__(
        self, gaussians: SharedGaussians, feature_map: FeatureMap, x: Tensor, y: Tensor, n_classes: int
    ) -> None:
        self._gaussians, self._feature_map, self._n_classes = gaussians, feature_map, n_classes
        self._labels, groups = torch.unique(y, return_inverse=True)
        members = functional.one_hot(groups, len(self._labels)).double()
        self._rows, self._members = FeatureRows(feature_map(x)), members
        self._log_share = (members.sum(dim=0) / len(x)).log()

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x), (B,)."""
        return self._weighted(x).logsumexp(dim=1) - self._feature_map.log_volume

    def predictive(self, x: Tensor) -> Tensor:
        """Class log-probabilities (B, C)."""
        log_proba = x.new_full((len(x), self._n_classes), _LOG_FLOOR, dtype=torch.float64)
        log_proba[:, self._labels] = self._weighted(x).log_softmax(dim=1).clamp_min(_LOG_FLOOR)
        return log_proba.log_softmax(dim=1)

    def _weighted(self, x: Tensor) -> Tensor:
        """log p(label) p(x | label), (B, number of labels)."""
        rows = FeatureRows(self._feature_map(x))
        return self._gaussians.log_prob_of_groups(rows, self._rows, self._members) + self._log_share


def kernel_model(feature_map: FeatureMap, x: Tensor, y: Tensor | None, n_classes: int) -> KernelModel:
    """Kernels around the stored samples in feature space; in standardised x before the map is fitted."""
    if not feature_map.fitted:
        feature_map = IdentityFeatures()
        feature_map.fit(x, generator=torch.Generator())
    centres = feature_map(x).double()
    variance = nearest_neighbour_variance(centres)

    def kernel(samples: Tensor, _: Tensor) -> Tensor:
        log_kernel = gaussian_kernel_log_prob(feature_map(samples).double(), centres, variance)
        return log_kernel - feature_map.log_volume

    return KernelModel(kernel, x, y.double() if y is not None and y.is_floating_point() else y, n_classes)
