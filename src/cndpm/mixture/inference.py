"""Combines the answers of the experts into those of the mixture (equations 5 and 6 of the paper)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["log_gate", "log_mixture_density", "log_normalise", "mix_gaussians", "mix_log_proba"]

Floats = NDArray[np.float64]


def log_gate(log_density: Tensor, counts: Tensor) -> Tensor:
    """Returns log p(z = k | x), the log-probability that each expert is responsible for x.

    Args:
        log_density: log p(x | k), (batch, n_experts).
        counts: N_k, (n_experts,).

    Returns:
        (batch, n_experts), float64; each row's exponentials sum to 1.

    Example:
        >>> log_gate(torch.zeros(1, 2), torch.tensor([1.0, 3.0])).exp()
        tensor([[0.2500, 0.7500]], dtype=torch.float64)
    """
    if log_density.is_cuda or log_density.requires_grad:
        return torch.log_softmax(log_density.double() + counts.double().log(), dim=1)
    # By arrays: for a few numbers starting a tensor's operation costs more than doing it.
    return torch.from_numpy(log_normalise(log_density.double().numpy() + np.log(counts.double().numpy())))


def log_mixture_density(log_density: Tensor, counts: Tensor) -> Tensor:
    """Returns the log density of the mixture, log p(x) = log Σ_k N_k / N p(x | k).

    Args:
        log_density: log p(x | k), (batch, n_experts).
        counts: N_k, (n_experts,).

    Returns:
        (batch,), float64.
    """
    log_prior = torch.log_softmax(counts.double().log(), dim=0)
    return torch.logsumexp(log_density.double() + log_prior, dim=1)


def mix_log_proba(log_gate: Tensor, log_proba: Tensor) -> Tensor:
    """Mixes class probabilities: log p(y | x) = log Σ_k p(z = k | x) p(y | x, k).

    Args:
        log_gate: log p(z = k | x) from :func:`log_gate`, (batch, n_experts).
        log_proba: log p(y | x, k), (batch, n_experts, n_classes).

    Returns:
        (batch, n_classes); each row's exponentials sum to 1.
    """
    joint = log_gate.unsqueeze(2) + log_proba.double()
    if joint.is_cuda or joint.requires_grad:
        return torch.log_softmax(torch.logsumexp(joint, dim=1), dim=1)
    return torch.from_numpy(log_normalise(np.logaddexp.reduce(joint.numpy(), axis=1)))


def mix_gaussians(log_gate: Tensor, moments: Tensor) -> Tensor:
    """Returns mean and variance of a mixture of Gaussian predictions, by the law of total variance.

    Args:
        log_gate: log p(z = k | x) from :func:`log_gate`, (batch, n_experts).
        moments: Mean and variance by each expert, (batch, n_experts, 2, n_outputs).

    Returns:
        Mean and variance, (batch, 2, n_outputs), float64.
    """
    weight = log_gate.exp()[:, :, None]
    mean, variance = moments.double().unbind(dim=2)
    mixed_mean = (weight * mean).sum(dim=1)
    mixed_square = (weight * (variance + (mean - mixed_mean.unsqueeze(1)).square())).sum(dim=1)
    return torch.stack([mixed_mean, mixed_square], dim=1)


def log_normalise(log_weights: Floats) -> Floats:
    """Returns log weights whose exponentials sum to 1 along the last axis.

    Example:
        >>> np.exp(log_normalise(np.log([1.0, 3.0])))
        array([0.25, 0.75])
    """
    normalised: Floats = log_weights - np.maximum.reduce(log_weights, axis=-1, keepdims=True)
    normalised -= np.log(np.add.reduce(np.exp(normalised), axis=-1, keepdims=True))
    return normalised
