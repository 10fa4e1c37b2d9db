"""Posterior components with one covariance, made ready for many questions: all that does not depend on the row."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.gaussian.conjugate import host_values, log_elliptical
from cndpm.experts.gaussian.factor import Factor

__all__ = ["Posteriors"]


class Posteriors(NamedTuple):
    """J components N(mu_j, (1 + 1 / kappa_j) Sigma), or Student's t; values are arrays where the factor is on the host.

    Attributes:
        factor: L of Sigma, prior and tail that they were made with.
        means: L^-1 mu_j, (J, d), float64, a tensor.
        squares: mu_j Sigma^-1 mu_j, (J,).
        peaks: Log densities at the means, (J,).
        widths: What squared distances are divided by, (J,).

    Example:
        >>> factor = Factor(
        ...     cholesky=torch.eye(2), log_det=0.0, anchors=torch.zeros(3, 2).double(), kappa=1.0, tail=math.inf,
        ...     count=3.0, degrees=1.0, shrinkage=0.1,
        ... )
        >>> made = Posteriors.of(factor, sums=torch.tensor([[6.0, 0.0]]).double(), counts=torch.tensor([2.0]).double())
        >>> made.means  # the mean of two samples and of the prior's one at zero
        tensor([[2., 0.]], dtype=torch.float64)
        >>> made.log_prob(*(torch.tensor([[value]]).double().numpy() for value in (4.0, 4.0))).round(3)  # at the mean
        array([[-2.126]])
    """

    factor: Factor
    means: Tensor
    squares: Any
    peaks: Any
    widths: Any

    @classmethod
    def of(cls, factor: Factor, *, sums: Tensor, counts: Tensor) -> Posteriors:
        """Makes components of whitened sums.

        Args:
            factor: The covariance and the prior of the means.
            sums: L^-1 s_j, (J, d), float64.
            counts: n_j, (J,), on any device.
        """
        kappas = host_values(counts.to(sums.device)) + factor.kappa
        values = (host_values(sums) + factor.kappa * host_values(factor.mean)) / kappas[:, None]
        means = torch.empty_like(sums)  # as memory of torch is, and what products round to may depend on that
        means.copy_(torch.as_tensor(values))
        n_dims, scale = means.shape[1], 1 + 1 / kappas
        peaks = log_elliptical(0 * kappas, factor.log_det, n_dims, scale, factor.tail)
        widths = scale if math.isinf(factor.tail) else scale * (factor.tail - 2)
        return cls(factor, means, (values**2).sum(axis=1), peaks, widths)

    def log_prob(self, lengths: Any, products: Any) -> Any:
        """Returns the log density of rows under every component, (B, J).

        Args:
            lengths: Squared lengths of whitened rows, (B, 1).
            products: Their products with the means, (B, J).
        """
        distance = lengths - 2 * products + self.squares
        distance = distance * (distance > 0) / self.widths  # clipping an array takes longer
        if math.isinf(self.factor.tail):
            return self.peaks - 0.5 * distance
        far = distance.log1p() if isinstance(distance, Tensor) else np.log1p(distance)
        return self.peaks - 0.5 * (self.factor.tail + self.means.shape[1]) * far
