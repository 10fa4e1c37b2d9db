"""Counts how recent every label is: its share of the latest rows beside its share of all."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cndpm.mixture import currency
from cndpm.mixture.time import Floats

__all__ = ["Labels"]


class Labels:
    """Counts labels.

    Args:
        counts: Rows of every label so far, (C,).

    Example:
        >>> labels = Labels()
        >>> labels.count(torch.tensor([0] * 50 + [1] * 50), 2)
        >>> labels.recent(torch.ones(50, dtype=torch.int64), 3)  # the third label never came
        tensor([0., 1., 0.], dtype=torch.float64)
    """

    def __init__(self, counts: Floats | None = None) -> None:
        self.counts = np.zeros(0) if counts is None else counts
        self._recent: Tensor | None = None

    def count(self, y: Tensor, n_classes: int) -> None:
        """Counts the labels of rows that come.

        Args:
            y: Class indices, (B,), on the host.
            n_classes: They lie below it.
        """
        counts = np.bincount(y.numpy(), minlength=n_classes).astype(np.float64)
        counts[: len(self.counts)] += self.counts
        self.counts, self._recent = counts, None

    def recent(self, latest: Tensor, n_classes: int) -> Tensor:
        """Returns how recent every class is, (n_classes,); it is computed once between two counts.

        Args:
            latest: Class indices of the latest rows, (n,).
            n_classes: C.
        """
        if self._recent is None or len(self._recent) != n_classes:
            counts = np.zeros(n_classes)
            counts[: len(self.counts)] = self.counts[:n_classes]
            seen = np.bincount(latest.numpy(), minlength=n_classes)[:n_classes].astype(np.float64)
            recent = currency(seen, seen.sum() * counts / max(1.0, counts.sum()), pseudo=1.0)
            # Of a class that it has not met the present knows nothing.
            self._recent = torch.from_numpy(recent * (counts > 0))
        return self._recent
