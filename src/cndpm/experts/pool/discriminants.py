"""Class Gaussians with one covariance over one representation, forgetting at several rates: linear discriminants."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from cndpm.experts.pool.forgetting import prior_strength
from cndpm.experts.pool.members import Members
from cndpm.state import tensor
from cndpm.state.expecting import Form

__all__ = ["Discriminants"]

_UNSEEN = -20.0
"""Log prior of a class that no sample (any more) stands for."""

_MEAN_PRIOR = 1.0
"""Samples that the prior of a class's mean, the mean of all, counts for."""


class Discriminants(Members):
    """M linear discriminants of C classes over d features that differ in how fast they forget.

    Rows of the products are features and which class it is, so that they hold products of features, sums and counts by
    class. Within-class covariance and means are shrunk by a prior.

    Args:
        n_features: d.
        n_classes: C, for now.
        keeps: What is left of a sample after the next one, by member; 1 forgets nothing.

    Example:
        >>> z, y = torch.tensor([[-1.0], [1.0]] * 10).double(), torch.tensor([0, 1] * 10)
        >>> model = Discriminants(1, 2, keeps=(0.99, 1.0))
        >>> model.learn(z, y, (0, 1))
        >>> model.answers(z[:2]).argmax(dim=2)
        tensor([[0, 1],
                [0, 1]])
    """

    def __init__(self, n_features: int, n_classes: int, keeps: tuple[float, ...]) -> None:
        super().__init__(n_features, n_classes, keeps)
        self.n_classes = n_classes
        self._weights = torch.zeros(len(keeps), n_classes, n_features, dtype=torch.float64)
        self._offsets = torch.zeros(len(keeps), n_classes, dtype=torch.float64)

    def admit(self, n_classes: int) -> None:
        missing = n_classes - self.n_classes
        if missing > 0:
            self.n_classes = n_classes
            self._sums.widen(missing)
            self._weights = pad(self._weights, (0, 0, 0, missing))
            self._offsets = pad(self._offsets, (0, missing), value=_UNSEEN)

    def answers(self, z: Tensor) -> Tensor:
        """Returns log p(y | x) up to a constant, (M, B, C), of features (B, d)."""
        scores = linear(z, self._weights.view(-1, self.n_features), self._offsets.view(-1))
        return scores.view(z.shape[0], -1, self.n_classes).transpose(0, 1)

    def _take_note(self, z: Tensor, y: Tensor, members: Collection[int], answered: Tensor | None) -> None:
        """Does nothing: errors of discriminants are not kept."""

    def _joined(self, z: Tensor, y: Tensor) -> Tensor:
        n = z.shape[0]
        rows = np.zeros((n, self.n_features + self.n_classes))
        rows[:, : self.n_features] = z.numpy()
        rows[np.arange(n), self.n_features + y.numpy()] = 1
        return torch.from_numpy(rows)

    def _solve(self, m: int, sums: Tensor) -> float:
        d = self.n_features
        # Few numbers, which arrays are quicker with, but for the products and the factor.
        counts, of_classes = sums.numpy().diagonal()[d:], sums.numpy()[d:, :d]
        n, prior = float(counts.sum()), prior_strength(d)
        shares = torch.from_numpy(of_classes / np.maximum(counts, 1e-9)[:, None])
        within = torch.addmm(sums[:d, :d], shares.T, sums[d:, :d], alpha=-1)
        within.diagonal().add_(prior)  # features vary by about one
        means = (of_classes + of_classes.sum(axis=0) * (_MEAN_PRIOR / n)) / (counts + _MEAN_PRIOR)[:, None]
        factor, info = torch.linalg.cholesky_ex(within)
        if not int(info):  # else rounding: features are linearly dependent and large; the older solution stands
            solved = torch.cholesky_solve(torch.from_numpy(means).T, factor).T.numpy() * (n + prior)
            log_prior = np.log((counts + 0.5) / (n + 0.5 * len(counts)))
            self._weights[m] = torch.from_numpy(solved)
            offsets = np.where(counts > 1e-6, log_prior - 0.5 * (means * solved).sum(axis=1), _UNSEEN)
            self._offsets[m] = torch.from_numpy(offsets)
        return n

    def _clear_solution(self, m: int) -> None:
        self._weights[m], self._offsets[m] = 0, 0

    def _append_solution(self) -> None:
        self._weights, self._offsets = pad(self._weights, (0, 0, 0, 0, 0, 1)), pad(self._offsets, (0, 0, 0, 1))

    def _solutions(self) -> dict[str, Tensor]:
        return {"weights": self._weights, "offsets": self._offsets}

    def _forms(self) -> dict[str, Form]:
        n = self.n_classes
        return {"weights": tensor("members", n, "d"), "offsets": tensor("members", n)}
