"""A cheap model of the samples in the memory, so that a class can be predicted as soon as it has been seen."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from cndpm.experts.chunks import Samples


class KernelModel:
    r"""One kernel around every stored sample x_i (M, ...), with class indices (M,), targets (M, n_outputs), or None.

    .. math::
        p(x) = \tfrac1M \sum_i \kappa(x; x_i), \qquad p(y \mid x) = \sum_i \frac{\kappa(x; x_i)}{\sum_j \kappa(x; x_j)}
        \, \delta(y - y_i)

    The kernel gives log κ for every pair, (batch, M).
    """

    def __init__(self, kernel: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor | None, n_classes: int) -> None:
        self._kernel = kernel
        self._x = x
        self._y = y
        self._n_classes = n_classes

    def log_density(self, samples: Samples) -> Tensor:
        """Returns log p(x), (batch,)."""
        return torch.logsumexp(self._log_kernel(samples), dim=1) - math.log(len(self._x))

    def predictive(self, samples: Samples) -> Tensor:
        """Returns class log-probabilities (batch, n_classes), or mean and variance (batch, 2, n_outputs)."""
        if self._y is None:
            raise ValueError("the memory holds no targets to predict")
        weight = torch.softmax(self._log_kernel(samples), dim=1)
        if self._y.is_floating_point():
            mean = weight @ self._y
            spread = weight @ self._y.square() - mean.square()
            return torch.stack([mean, spread.clamp_min(0) + self._y.var(dim=0, correction=0).clamp_min(1e-4) / 10], 1)
        one_hot = torch.nn.functional.one_hot(self._y, self._n_classes).to(weight.dtype)
        smoothed = weight @ one_hot + 1e-6
        return torch.log(smoothed / smoothed.sum(dim=1, keepdim=True))

    def _log_kernel(self, samples: Samples) -> Tensor:
        """Returns log κ of samples and centres, (batch, M), computed once for both answers."""
        return samples.derive("kernel", self, lambda chunk: self._kernel(chunk.x, self._x))


def gaussian_kernel_log_prob(x: Tensor, centres: Tensor, variance: Tensor | float) -> Tensor:
    """Returns log N(x; centre, variance I) of x (batch, ...) for every centre (n_centres, ...), (batch, n_centres)."""
    scale = torch.as_tensor(variance, dtype=x.dtype, device=x.device)
    distance = torch.cdist(x.flatten(1), centres.flatten(1)).square()
    n_features = x[0].numel()
    return -0.5 * (distance / scale + n_features * torch.log(2 * torch.pi * scale))


def nearest_neighbour_variance(centres: Tensor) -> Tensor:
    """Returns the mean squared distance to the nearest other centre, per feature; 1 for one centre, never zero."""
    if len(centres) < 2:
        return torch.ones((), device=centres.device)
    flat = centres.flatten(1)
    squares = flat.square().sum(dim=1)
    distance = torch.addmm(squares[:, None] + squares, flat, flat.T, alpha=-2).fill_diagonal_(torch.inf)
    return (distance.amin(dim=1).clamp_min(0).mean() / flat.shape[1]).clamp_min(1e-3)
