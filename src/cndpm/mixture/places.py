r"""Places and times in one gate: where x lies decides between places, what was seen lately decides within one.

A model of the present answers for data like the latest. It must not answer for places and labels that have not come
lately, which the experts remember. Both are told by what came:

- an expert's place is *current* as far as the gate, by x alone, gives the latest samples to it about as often as its
  share of all samples says. Experts of the same place share its samples, so one that holds a rule of the past is as
  current as the one that holds the rule of today; and for samples like the latest, experts that are not current have
  little weight, by construction;
- a label is *recent* as far as its share of the latest samples is not much smaller than its share of all.

With g_k the gate, p_k the experts' answers, c the present's, a_k and r_y in [0, 1] how current and how recent:

.. math::
    p(y \mid x) = \sum_k g_k (1 - a_k) p_k(y) + \sum_k g_k a_k \bigl(p_k(y) (1 - r_y) + R_k\, c_r(y)\bigr)

with R_k = sum_y p_k(y) r_y and c_r(y) proportional to c(y) r_y: what the experts give to recent labels is shared out as
the present says.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["currency", "present_log_proba", "present_moments"]

_LOW, _HIGH = 0.1, 0.5
"""Below a tenth of its expected share something is of the past, above half of it of the present, between in part."""


Values = TypeVar("Values", Tensor, NDArray[np.float64])


def currency(latest: Values, expected: Values, *, pseudo: float = 0.0) -> Values:
    """Returns how far things that came lately came as often as expected, (n,), from 0 to 1.

    Args:
        latest: How often each came lately, (n,).
        expected: How often it would have, by its share of all that ever came, (n,).
        pseudo: Added to both, so that what is rare counts as present until there is evidence against it.

    Example:
        >>> currency(torch.tensor([60.0, 40.0, 0.0]), torch.tensor([50.0, 100.0, 50.0]))
        tensor([1.0000, 0.7500, 0.0000])
    """
    ratio = (latest + pseudo) / (expected + pseudo).clip(1e-12)
    current: Values = ((ratio - _LOW) / (_HIGH - _LOW)).clip(0, 1)
    return current


def present_log_proba(
    log_gate: Tensor, log_experts: Tensor, log_present: Tensor, current: Tensor, recent: Tensor
) -> Tensor:
    """Returns log-probabilities of the classes for now, (B, C).

    Args:
        log_gate: log p(k | x), (B, K).
        log_experts: log p(y | x, k), (B, K, C).
        log_present: log p(y | x) as what came lately has it, (B, C).
        current: a, (K,), or (B, K) where it differs from sample to sample.
        recent: r, (C,).

    Example:
        >>> flipped = torch.tensor([[0.1, 0.9]]).log()
        >>> expert, ones = torch.tensor([[[0.9, 0.1]]]).log(), torch.ones(2)
        >>> present_log_proba(torch.zeros(1, 1), expert, flipped, current=torch.ones(1), recent=ones).exp()
        tensor([[0.1000, 0.9000]])
        >>> present_log_proba(torch.zeros(1, 1), expert, flipped, current=torch.zeros(1), recent=ones).exp()
        tensor([[0.9000, 0.1000]])
    """
    device, dtype = log_gate.device, log_gate.dtype  # on the host: these are few numbers, which arrays are quicker with
    parts = (log_gate, log_experts, log_present, current, recent)
    gate, experts, now, currents, recents = (part.numpy(force=True) for part in parts)
    weight = np.exp(gate)[:, :, None] * np.exp(experts)  # (B, K, C)
    shared = weight * currents[..., None] * recents
    present = np.exp(now) * recents
    present /= np.maximum(np.add.reduce(present, axis=1, keepdims=True), 1e-300)
    # Where nothing is recent nothing is shared out, and the experts' answer stands.
    answer = np.add.reduce(weight - shared, axis=1) + np.add.reduce(shared, axis=(1, 2))[:, None] * present
    answer /= np.add.reduce(answer, axis=1, keepdims=True)
    return torch.from_numpy(np.log(np.maximum(answer, 1e-300))).to(device, dtype)


def present_moments(log_gate: Tensor, experts: Tensor, present: Tensor, current: Tensor) -> Tensor:
    """Returns mean and variance of the targets for now, (B, 2, n_outputs).

    Args:
        log_gate: log p(k | x), (B, K).
        experts: Mean and variance by expert, (B, K, 2, n_outputs).
        present: Mean and variance as what came lately has them, (B, 2, n_outputs).
        current: a, (K,), or (B, K) where it differs from sample to sample.

    Example:
        >>> expert, present = torch.tensor([[[[1.0], [0.5]]]]), torch.tensor([[[3.0], [0.2]]])
        >>> present_moments(torch.zeros(1, 1), expert, present, current=torch.ones(1)).flatten()
        tensor([3.0000, 0.2000])
    """
    gate = log_gate.exp()
    kept = gate * (1 - current)
    weights = torch.cat([kept, (gate * current).sum(dim=1, keepdim=True)], dim=1).unsqueeze(2)
    moments = torch.cat([experts, present.unsqueeze(1)], dim=1)
    mean, variance = moments.unbind(dim=2)
    mixed = (weights * mean).sum(dim=1)
    spread = (weights * (variance + (mean - mixed.unsqueeze(1)).square())).sum(dim=1)
    return torch.stack([mixed, spread], dim=1)
