"""Gaussians over what waits in the memory, comparable with the experts', until sleep makes an expert of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from cndpm.experts.features import FeatureMap, IdentityFeatures
from cndpm.experts.gaussian.rows import FeatureRows
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.experts.kernels import KernelModel
from cndpm.experts.neural.parts import gaussian_kernel_log_prob, nearest_neighbour_variance

__all__ = ["ProvisionalGaussians", "kernel_model"]

_LOG_FLOOR = -50.0


class ProvisionalGaussians:
    """One Gaussian per label of the memory, with the experts' covariance and prior.

    Args:
        gaussians: The experts' components; they are not changed.
        rows: Finds the feature rows of samples.
        x: The stored samples, (M, ...).
        y: Class indices (M,); zeros where there are no labels.
        n_classes: Width of :meth:`predictive`.
        log_volume: Of the feature map.
    """

    def __init__(
        self,
        gaussians: SharedGaussians,
        rows: Callable[[Tensor], FeatureRows],
        x: Tensor,
        y: Tensor,
        *,
        n_classes: int,
        log_volume: float,
    ) -> None:
        self._gaussians, self._rows, self._n_classes, self._log_volume = gaussians, rows, n_classes, log_volume
        memory = rows(x)
        self._labels, groups = (part.to(memory.z.device) for part in torch.unique(y, return_inverse=True))
        members = functional.one_hot(groups, len(self._labels)).double()
        self._groups = gaussians.groups(memory, members)
        self._log_share = (members.sum(dim=0) / len(x)).log()
        self._latest: tuple[FeatureRows, Tensor] | None = None

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x), (B,)."""
        return self._weighted(x).logsumexp(dim=1) - self._log_volume

    def predictive(self, x: Tensor) -> Tensor:
        """Class log-probabilities (B, C)."""
        log_proba = x.new_full((len(x), self._n_classes), _LOG_FLOOR, dtype=torch.float64)
        log_proba[:, self._labels] = self._weighted(x).log_softmax(dim=1).clamp_min(_LOG_FLOOR)
        return log_proba.log_softmax(dim=1)

    def _weighted(self, x: Tensor) -> Tensor:
        """log p(label) p(x | label), (B, number of labels)."""
        rows = self._rows(x)
        if self._latest is None or self._latest[0] is not rows:
            self._latest = (rows, self._gaussians.log_prob_of_groups(rows, self._groups) + self._log_share)
        return self._latest[1]


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
