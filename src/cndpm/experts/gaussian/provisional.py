"""Gaussians over the samples in the memory, comparable with the experts', until sleep makes an expert of them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.experts.features import FeatureMap, IdentityFeatures
from cndpm.experts.gaussian.densities import Posteriors
from cndpm.experts.gaussian.factor import host_values
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.experts.kernels import KernelModel, gaussian_kernel_log_prob, nearest_neighbour_variance
from cndpm.mixture.inference import log_normalise

LOG_FLOOR = -50.0
"""The least log-probability of a label."""


class ProvisionalGaussians:
    """One Gaussian per label of the memory, with the experts' covariance and prior as they are when it is asked.

    The labels y (M,) are zeros where there are none; `exact` brings the covariance up to date first.
    """

    def __init__(
        self, gaussians: SharedGaussians, memory: Samples, y: Tensor, *, exact: bool, n_classes: int, log_volume: float
    ) -> None:
        self._gaussians, self._exact, self._n_classes, self._log_volume = gaussians, exact, n_classes, log_volume
        labels = torch.unique(y)
        members = (y[:, None] == labels).double()
        self._labels = host_values(labels.to(memory.x.device))
        self._is_on_host = memory.x.device.type == "cpu"
        self._counts = members.sum(dim=0)
        self._sums = members.to(memory.x.device).T @ gaussians.answers.shifted(memory)
        self._log_share = host_values(members.mean(dim=0).log().to(memory.x.device))
        self._whitened: tuple[Tensor, Tensor] | None = None
        self._groups: Posteriors | None = None

    def log_density(self, samples: Samples) -> Tensor:
        """Returns log p(x), (B,)."""
        return self._weighted(samples).logsumexp(dim=1) - self._log_volume

    def predictive(self, samples: Samples) -> Tensor:
        """Returns class log-probabilities (B, C)."""
        weighted = self._weighted(samples)
        if not self._is_on_host:
            log_proba = weighted.new_full((len(weighted), self._n_classes), LOG_FLOOR)
            log_proba[:, self._labels] = weighted.log_softmax(dim=1).clamp_min(LOG_FLOOR)
            return log_proba.log_softmax(dim=1)
        values = np.full((len(weighted), self._n_classes), LOG_FLOOR)
        values[:, self._labels] = np.maximum(log_normalise(weighted.numpy()), LOG_FLOOR)
        return torch.from_numpy(log_normalise(values))

    def _weighted(self, samples: Samples) -> Tensor:
        """Returns log p(label) p(x | label), (B, number of labels)."""
        factor, groups = self._gaussians.answers.factor(exact=self._exact), self._groups
        if groups is None or groups.factor is not factor:
            if self._whitened is None or self._whitened[0] is not factor.cholesky:
                self._whitened = (factor.cholesky, factor.whiten(self._sums))
            groups = self._groups = Posteriors.of(factor, sums=self._whitened[1], counts=self._counts)
        return samples.derive("of memory", groups, lambda chunk: self._log_prob(chunk, groups))

    def _log_prob(self, samples: Samples, groups: Posteriors) -> Tensor:
        """Returns the log density of samples under every group and its label's share, (B, G)."""
        answers, factor = self._gaussians.answers, groups.factor
        products = host_values(answers.whitened(samples, factor) @ groups.means.T)
        lengths = host_values(answers.products(samples, factor)[:, :1])
        return torch.as_tensor(groups.log_prob(lengths, products) + self._log_share)


def sum_by_label(log_proba: Tensor, labels: Tensor, n_classes: int) -> Tensor:
    """Adds up log-probabilities (B, S) of components that bear the same label, (B, C); others have the least one."""
    summed = log_proba.new_zeros(len(log_proba), n_classes).scatter_add_(1, labels, log_proba.exp())
    return summed.log().clamp_min(LOG_FLOOR)


def kernel_model(feature_map: FeatureMap, x: Tensor, y: Tensor | None, n_classes: int) -> KernelModel:
    """Puts kernels around the stored samples in feature space; in standardised x before the map is fitted."""
    if not feature_map.fitted:
        feature_map = IdentityFeatures()
        feature_map.fit(x, generator=torch.Generator())
    centres = feature_map(x).double()
    variance = nearest_neighbour_variance(centres)

    def kernel(samples: Tensor, _: Tensor) -> Tensor:
        log_kernel = gaussian_kernel_log_prob(feature_map(samples).double(), centres, variance)
        return log_kernel - feature_map.log_volume

    return KernelModel(kernel, x, y.double() if y is not None and y.is_floating_point() else y, n_classes)
