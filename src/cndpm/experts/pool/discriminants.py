"""Class Gaussians with one covariance over one representation, forgetting at several rates: linear discriminants."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import pad

from cndpm.experts.pool.forgetting import Floats, fading_weights, prior_strength, renewal_interval
from cndpm.state import State

__all__ = ["Discriminants"]

_UNSEEN = -20.0
"""Log prior of a class that no sample (any more) stands for."""

_MEAN_PRIOR = 1.0
"""Samples that the prior of a class's mean, the mean of all, counts for."""


class Discriminants:
    """H linear discriminants of C classes over d features that differ in how fast they forget.

    Each keeps faded counts, sums and products of features. Within-class covariance and means are shrunk by a prior; the
    solution is renewed when a twentieth of the samples it rests on have come anew.

    Args:
        n_features: d.
        n_classes: C, for now.
        keeps: What is left of a sample after the next one, by horizon; 1 forgets nothing.

    Example:
        >>> z, y = np.array([[-1.0], [1.0]] * 10), np.array([0, 1] * 10)
        >>> model = Discriminants(1, 2, keeps=(0.99, 1.0))
        >>> model.learn(z, y)
        >>> model.logits(z[:2]).argmax(axis=2)
        array([[0, 1],
               [0, 1]])
    """

    def __init__(self, n_features: int, n_classes: int, keeps: tuple[float, ...]) -> None:
        self.keeps = np.array(keeps)
        n, dtype = len(keeps), torch.float64
        self._counts = torch.zeros(n, n_classes, dtype=dtype)
        self._sums = torch.zeros(n, n_classes, n_features, dtype=dtype)
        self._products = torch.zeros(n, n_features, n_features, dtype=dtype)
        self._weights = torch.zeros(n, n_features, n_classes, dtype=dtype)
        self._offsets = torch.zeros(n, 1, n_classes, dtype=dtype)
        self._waits = [0] * n

    @property
    def n_numbers_kept(self) -> int:
        """Sums and solutions."""
        return sum(getattr(self, f"_{name}").numel() for name in _PARTS)

    def admit(self, n_classes: int) -> None:
        """Makes room for class indices below `n_classes`."""
        missing = n_classes - self._counts.shape[1]
        if missing > 0:
            self._counts, self._weights = pad(self._counts, (0, missing)), pad(self._weights, (0, missing))
            self._sums = pad(self._sums, (0, 0, 0, missing))
            self._offsets = pad(self._offsets, (0, missing), value=_UNSEEN)

    def learn(self, z: Floats, y: NDArray[np.int64]) -> None:
        """Learns a batch and renews the solutions that are due.

        Args:
            z: Features, (B, d).
            y: Class indices below C, (B,).
        """
        left, weights = (torch.from_numpy(part) for part in fading_weights(self.keeps, len(z)))
        rows, members = torch.from_numpy(z), torch.zeros(self._counts.shape[1], len(z), dtype=torch.float64)
        members[torch.from_numpy(y), torch.arange(len(z))] = 1.0
        by_class = weights[:, None] * members  # (H, C, B)
        self._counts = self._counts * left[:, None] + by_class.sum(dim=2)
        self._sums = self._sums * left[:, None, None] + by_class @ rows
        for h, kept in enumerate(left.tolist()):
            self._products[h].addmm_((rows * weights[h, :, None]).T, rows, beta=kept)
            self._waits[h] -= len(z)
            if self._waits[h] <= 0:
                self._solve(h)

    def logits(self, z: Floats) -> Floats:
        """Returns log p(y | x) up to a constant, (H, B, C), of features (B, d)."""
        scores: Floats = (torch.from_numpy(z) @ self._weights + self._offsets).numpy()
        return scores

    def _solve(self, h: int) -> None:
        counts, sums = self._counts[h], self._sums[h]
        n, prior = float(counts.sum()), prior_strength(sums.shape[1])
        within = torch.addmm(self._products[h], (sums / counts.clamp_min(1e-9)[:, None]).T, sums, alpha=-1)
        within.diagonal().add_(prior)  # features vary by about one
        within /= n + prior
        means = (sums + _MEAN_PRIOR * sums.sum(dim=0) / n) / (counts + _MEAN_PRIOR)[:, None]
        factor, info = torch.linalg.cholesky_ex(within)
        if int(info):  # rounding: features are linearly dependent and large; the older solution stands
            return
        solved = torch.cholesky_solve(means.T, factor)
        log_prior = ((counts + 0.5) / (n + 0.5 * len(counts))).log()
        self._weights[h] = solved
        self._offsets[h, 0] = torch.where(counts > 1e-6, log_prior - 0.5 * (means.T * solved).sum(dim=0), _UNSEEN)
        self._waits[h] = renewal_interval(n)

    def state_dict(self) -> State:
        """Returns sums and solutions."""
        return {name: getattr(self, f"_{name}").clone() for name in _PARTS} | {"waits": list(self._waits)}

    def load_state_dict(self, state: State) -> None:
        """Restores them to the bit."""
        for name in _PARTS:
            setattr(self, f"_{name}", state[name].cpu().clone())
        self._waits = list(state["waits"])


_PARTS = ("counts", "sums", "products", "weights", "offsets")
