"""Finds redundant experts of one mixture (appendix D of the paper), and those of several that are of one concept.

Two experts of different mixtures are taken for one where either explains most of the other's samples as its own, so
that one mixture, given both streams, would have had one expert for both. What is linked by a third is one, too. The
relation knows no order of the mixtures, and joining some of them first leads to the same groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
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


def best_of_sources(margins: NDArray[np.float64], sources: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Returns whether i takes samples of j, as the best of its mixture, [i, j], by their margins under i, (S, S)."""
    best = np.zeros(margins.shape, dtype=bool)
    for source in np.unique(sources):
        mine = sources == source
        best[mine] = margins[mine] >= margins[mine].max(axis=0)
    return best


def same_concepts(explained: Tensor, sources: Sequence[int]) -> list[list[int]]:
    """Groups experts that stand for the same concept; groups ascend, and are in the order of their first members.

    `explained` is the share of the samples of expert b that expert a explains, [a, b], (K, K); two experts of the same
    source are never linked directly.

    Example:
        >>> import torch
        >>> same_concepts(torch.tensor([[1.0, 0.0, 0.9], [0.0, 1.0, 0.0], [0.2, 0.0, 1.0]]), sources=[0, 0, 1])
        [[0, 2], [1]]
    """
    linked = ((explained > 1 / 2) | (explained.T > 1 / 2)).tolist()  # most samples
    n, group = len(sources), list(range(len(sources)))
    for a in range(n):
        for b in range(a):
            if linked[a][b] and sources[a] != sources[b] and group[a] != group[b]:
                kept, gone = sorted((group[a], group[b]))
                group = [kept if name == gone else name for name in group]
    return [[k for k in range(n) if group[k] == first] for first in range(n) if first in group]
