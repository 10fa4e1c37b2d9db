"""Conjugate Gaussian mathematics on plain tensors: predictive densities in closed form.

Two priors are used.

- Covariance known (shared by all components): mu ~ N(m0, Sigma / kappa0). After n samples with mean z̄ the predictive
  density is N(mu_n, (1 + 1 / kappa_n) Sigma) with kappa_n = kappa0 + n and mu_n = (kappa0 m0 + n z̄) / kappa_n.
- Covariance unknown: normal-inverse-Wishart (m0, kappa0, nu0, Psi0); the predictive density is Student's t.

See Murphy, "Conjugate Bayesian analysis of the Gaussian distribution" (2007), sections 8 and 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = [
    "NormalInverseWishart",
    "Values",
    "host_values",
    "log_components",
    "log_elliptical",
    "log_student_t",
    "log_sum",
    "normal_inverse_wishart_from_sums",
]


Values = TypeVar("Values", Tensor, NDArray[np.float64])
"""Tensors, or arrays: a batch is so small that on the host starting a tensor's operation costs more than doing it."""


def host_values(tensor: Tensor) -> Any:
    """Returns a tensor of the host as an array that shares its numbers; one of another device as it is.

    Example:
        >>> host_values(torch.zeros(2))
        array([0., 0.], dtype=float32)
    """
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def log_sum(log_values: Values) -> Values:
    """Returns log sum exp over the last axis, (...), of values (..., n), none of which is infinite.

    Example:
        >>> bool(log_sum(np.log([[1.0, 3.0]])) == math.log(4))
        True
    """
    total: Values
    if isinstance(log_values, Tensor):
        total = log_values.logsumexp(dim=-1)
    else:
        top = log_values.max(axis=-1, keepdims=True)
        total = np.log(np.exp(log_values - top).sum(axis=-1)) + top[..., 0]
    return total


def log_elliptical(squared_distance: Values, log_det: float, n_dims: int, scale: Values, tail: float) -> Values:
    """Returns the log density with mean mu and covariance scale * Sigma, elementwise.

    Normal for tail = inf. Otherwise Student's t with `tail` > 2 degrees of freedom: a normal whose covariance every
    sample multiplies by a factor of its own. In many dimensions real samples have such a factor, and without it the
    widest component, not the nearest, explains those with a large one.

    Args:
        squared_distance: Squared Mahalanobis distances under Sigma, (...).
        log_det: log det Sigma.
        n_dims: d.
        scale: Factor of the covariance, broadcast against the distances.
        tail: Degrees of freedom, inf for the normal density.
    """
    module: Any = torch if isinstance(squared_distance, Tensor) else np
    log_density: Values
    if math.isinf(tail):
        spread = n_dims * (math.log(2 * math.pi) + module.log(scale)) + log_det
        log_density = -0.5 * (spread + squared_distance / scale)
        return log_density
    shape = scale * ((tail - 2) / tail)
    constant = math.lgamma((tail + n_dims) / 2) - math.lgamma(tail / 2) - 0.5 * n_dims * math.log(tail * math.pi)
    spread = 0.5 * (log_det + n_dims * module.log(shape))
    far = module.log1p(squared_distance / (shape * tail))
    log_density = constant - spread - 0.5 * (tail + n_dims) * far
    return log_density


def log_components(
    products: tuple[Values, Values, Values, Values],
    kappas: Values,
    *,
    kappa: float,
    log_det: float,
    n_dims: int,
    tail: float,
) -> Values:
    """Returns log densities of components that share a covariance and, last, of "new", (B, J + 1).

    Args:
        products: Inner products of whitened vectors: rows with themselves, (B,); rows with anchors, (B, J + 2);
            anchors with the prior mean, (J + 2,); anchors with themselves, (J + 2,). Anchors are the sums of the
            components, zeros, and the prior mean.
        kappas: kappa0 + n_j, and kappa0, (J + 1,).
        kappa: kappa0.
        log_det: log det Sigma.
        n_dims: d.
        tail: As for :func:`log_elliptical`.
    """
    squares, inner, to_mean, lengths = products
    cross = (inner[:, :-1] + kappa * inner[:, -1:]) / kappas
    of_means = (lengths[:-1] + 2 * kappa * to_mean[:-1] + kappa**2 * lengths[-1]) / kappas**2
    distance = squares[:, None] - 2 * cross + of_means
    distance = distance * (distance > 0)  # clipping an array takes longer
    return log_elliptical(distance, log_det, n_dims, 1 + 1 / kappas, tail)


@dataclass(frozen=True)
class NormalInverseWishart:
    """mu | Sigma ~ N(mean, Sigma / kappa), Sigma ~ IW(psi, nu); leading dimensions are components.

    Attributes:
        mean: (..., d).
        kappa: (...,), pseudo-samples behind the mean.
        nu: (...,), degrees of freedom, larger than d - 1.
        psi: (..., d, d), scale matrix.

    Example:
        >>> one = torch.tensor(1.0)
        >>> prior = NormalInverseWishart(mean=torch.zeros(2), kappa=one, nu=3 * one, psi=torch.eye(2))
        >>> degrees, location, scale = prior.predictive()
        >>> float(degrees), scale.diagonal()
        (2.0, tensor([1., 1.]))
    """

    mean: Tensor
    kappa: Tensor
    nu: Tensor
    psi: Tensor

    @property
    def n_dims(self) -> int:
        """d."""
        return self.mean.shape[-1]

    def predictive(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns degrees of freedom (...,), location (..., d) and scale matrix (..., d, d) of Student's t."""
        degrees = self.nu - self.n_dims + 1
        factor = (self.kappa + 1) / (self.kappa * degrees)
        return degrees, self.mean, self.psi * factor[..., None, None]


def normal_inverse_wishart_from_sums(
    prior: NormalInverseWishart, count: Tensor, total: Tensor, second_moment: Tensor
) -> NormalInverseWishart:
    """Returns the posterior of J components after weighted data.

    Args:
        prior: Of every component, without leading dimensions.
        count: Sums of weights w, (J,).
        total: Sums of w z, (J, d).
        second_moment: Sums of w z zᵀ, (J, d, d).
    """
    kappa = prior.kappa + count
    mean = (prior.kappa * prior.mean + total) / kappa[..., None]
    prior_square = prior.kappa * torch.outer(prior.mean, prior.mean)
    square = kappa[..., None, None] * mean[..., :, None] * mean[..., None, :]
    psi = prior.psi + second_moment + prior_square - square
    return NormalInverseWishart(mean, kappa, prior.nu + count, 0.5 * (psi + psi.mT))


def log_student_t(z: Tensor, degrees: Tensor, location: Tensor, cholesky: Tensor) -> Tensor:
    """Returns log t(z; degrees, location, L Lᵀ) of B samples under J components, (B, J).

    Args:
        z: (B, d).
        degrees: Degrees of freedom, (J,).
        location: (J, d).
        cholesky: L, lower triangular, (J, d, d).
    """
    d = z.shape[-1]
    centred = (z[:, None] - location).permute(1, 2, 0)
    distance = torch.linalg.solve_triangular(cholesky, centred, upper=False).square().sum(dim=1).T
    log_det = 2 * cholesky.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
    constant = torch.lgamma((degrees + d) / 2) - torch.lgamma(degrees / 2) - 0.5 * d * (degrees * math.pi).log()
    return constant - 0.5 * log_det - 0.5 * (degrees + d) * torch.log1p(distance / degrees)
