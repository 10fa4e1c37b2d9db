"""Finds experts of several mixtures that stand for the same concept.

Two experts of different mixtures are taken for one where either explains most of the other's samples as its own, so
that one mixture, given both streams, would have had one expert for both. What is linked by a third is one, too. The
relation knows no order of the mixtures, and joining some of them first leads to the same groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


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
