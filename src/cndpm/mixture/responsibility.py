"""Responsibilities of experts for samples, by sequential variational approximation of a Dirichlet process.

Everything is computed in log space and float64: log α reaches from -600 to 410 and log densities are of the order of
-1,000, so neither α nor a likelihood may ever be exponentiated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["Routing", "is_new", "log_responsibilities", "route"]


class Routing(NamedTuple):
    """Tells for one batch which samples are new and how the others are spread over the experts.

    Attributes:
        is_new: (batch,) bool. True where the sample goes to the memory.
        responsibilities: (batch, n_experts) float64. Each row of a known sample sums to 1; rows of new ones are zero.

    Example:
        >>> routing = route(torch.zeros(2, 2), torch.tensor([False, True]))
        >>> routing.responsibilities
        tensor([[0.5000, 0.5000],
                [0.0000, 0.0000]], dtype=torch.float64)
    """

    is_new: Tensor
    responsibilities: Tensor


def log_responsibilities(log_known: Tensor, log_new: Tensor, log_alpha: float) -> Tensor:
    r"""Returns the log responsibilities of all experts and of "new" (equation 7 of the paper).

    .. math:: \rho_k \propto N_k\, p(x, y \mid k), \qquad \rho_{K+1} \propto \alpha\, p(x, y \mid \text{new})

    Args:
        log_known: log N_k + log p(x, y | k), (batch, n_experts).
        log_new: log p(x, y) under "new", (batch,).
        log_alpha: log of the concentration; any finite number.

    Returns:
        (batch, n_experts + 1) float64; the last column is "new"; each row's exponentials sum to 1.

    Example:
        >>> log_responsibilities(torch.zeros(1, 1), torch.zeros(1), 0.0).exp()
        tensor([[0.5000, 0.5000]], dtype=torch.float64)
    """
    new = log_new.double() + log_alpha
    return torch.log_softmax(torch.cat([log_known.double(), new.unsqueeze(1)], dim=1), dim=1)


def is_new(log_resp: Tensor) -> Tensor:
    """Returns, (batch,) bool, where "new" is the single best hypothesis (line 10 of Algorithm 1).

    The argument is the result of :func:`log_responsibilities`, (batch, n_experts + 1).
    """
    return log_resp.argmax(dim=1) == log_resp.shape[1] - 1


def route(log_known: Tensor, is_new: Tensor) -> Routing:
    """Spreads known samples over the existing experts (line 17 of Algorithm 1).

    Args:
        log_known: log N_k + log p(x, y | k), (batch, n_experts).
        is_new: From :func:`is_new`, (batch,) bool.
    """
    log_known = log_known.double()
    if not log_known.shape[1]:
        return Routing(is_new, log_known)
    # By arrays: starting a tensor's operation costs more than a few numbers do, and softmax wakes all threads.
    values = log_known.detach().numpy()
    shares = np.exp(values - values.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[is_new.numpy()] = 0.0
    return Routing(is_new, torch.from_numpy(shares))
