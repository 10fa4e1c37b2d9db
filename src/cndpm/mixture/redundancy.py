"""Finds redundant experts (appendix D of the paper)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Merge", "plan_merges", "similarity"]


class Merge(NamedTuple):
    """Says that expert `removed` is redundant and that its count goes to expert `into`.

    Example:
        >>> plan_merges(torch.tensor([[1.0, 0.95], [0.95, 1.0]]), torch.tensor([10, 20]), threshold=0.9)
        [Merge(removed=0, into=1)]
    """

    removed: int
    into: int


def similarity(log_joint: Tensor) -> Tensor:
    r"""Returns the cosine similarity of the experts' log-likelihood vectors, each sample's relative to its best expert.

    .. math::
        s(k, k') = \frac{r_{\cdot k} \cdot r_{\cdot k'}}{|r_{\cdot k}|\,|r_{\cdot k'}|}, \qquad
        r_{nk} = l_{nk} - \max_j l_{nj}

    The paper takes the cosine of l itself, which depends on constants that all experts share: with the -720 nats of a
    unit-variance Gaussian over 784 pixels, experts of different tasks are 0.93 similar. Relative values do not.

    Args:
        log_joint: l_{nk} = log p(x_n, y_n | k), (n_samples, n_experts).

    Returns:
        (n_experts, n_experts), symmetric, ones on the diagonal; an expert that is the best for every sample is similar
        to none.
    """
    relative = log_joint.double()
    relative = relative - relative.amax(dim=1, keepdim=True)
    unit = torch.nn.functional.normalize(relative, dim=0)
    return (unit.T @ unit).clamp(-1.0, 1.0).fill_diagonal_(1.0)


def plan_merges(similarities: Tensor, counts: Tensor, threshold: float) -> list[Merge]:
    """Plans to remove, pair by pair from the most similar on, the expert with the smaller count.

    Args:
        similarities: From :func:`similarity`, (n_experts, n_experts).
        counts: N_k, (n_experts,).
        threshold: Pairs whose similarity is not above it are kept.

    Returns:
        Merges in the order in which to carry them out, in the numbering before any of them. No expert is removed
        twice, none receives after it was removed, and at least one remains.
    """
    weight = counts.double().tolist()
    remaining = set(range(len(weight)))
    pairs = [
        (similarities[i, j].item(), i, j)
        for i in remaining
        for j in remaining
        if i < j and similarities[i, j].item() > threshold
    ]
    merges = []
    for _, i, j in sorted(pairs, reverse=True):
        if i in remaining and j in remaining:
            removed, into = (i, j) if weight[i] < weight[j] else (j, i)
            weight[into] += weight[removed]
            remaining.remove(removed)
            merges.append(Merge(removed, into))
    return merges
