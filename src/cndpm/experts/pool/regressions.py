"""Bayesian linear regressions over one representation, forgetting at several rates."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.pool.forgetting import Floats, fading_weights, prior_strength, renewal_interval
from cndpm.state import State

__all__ = ["Regressions"]

_CONSTANT_PRIOR = 1e-3

_NOISE_PRIOR = 0.05
"""Variance that the noise begins with, as of one sample; targets have about unit variance."""

_NOISE_KEEP = 0.99
"""Errors are forgotten at least so fast: those of the first samples say little about the noise."""


class Regressions:
    """H ridge regressions of o targets on d features and a constant, that differ in how fast they forget.

    The noise of each is the mean square of its own errors on batches that it had not learned yet, faded as its samples
    are, each error in units of what the weights' uncertainty foretold: far from the data the variance grows.

    Args:
        n_features: d.
        n_outputs: o.
        keeps: What is left of a sample after the next one, by horizon; 1 forgets nothing.

    Example:
        >>> z = np.linspace(-1, 1, 400)[:, None]
        >>> model = Regressions(1, 1, keeps=(1.0,))
        >>> for part in np.split(z, 4):
        ...     model.learn(part, 2 * part)
        >>> model.moments(np.array([[0.5]]))[0, 0, 0].round(1)
        array([1.])
    """

    def __init__(self, n_features: int, n_outputs: int, keeps: tuple[float, ...]) -> None:
        self.keeps = np.array(keeps)
        n, d, dtype = len(keeps), n_features + 1, torch.float64
        self._counts, self._n_errors = torch.zeros(n, dtype=dtype), torch.zeros(n, dtype=dtype)
        self._products = torch.zeros(n, d, d, dtype=dtype)
        self._targets = torch.zeros(n, d, n_outputs, dtype=dtype)
        self._errors = torch.zeros(n, n_outputs, dtype=dtype)
        self._weights = torch.zeros(n, d, n_outputs, dtype=dtype)
        self._prior = torch.full((d,), prior_strength(n_features), dtype=dtype)
        self._prior[-1] = _CONSTANT_PRIOR
        self._factors = self._prior.sqrt().diag().repeat(n, 1, 1)
        self._waits = [0] * n

    @property
    def n_numbers_kept(self) -> int:
        """Sums and solutions."""
        return sum(getattr(self, f"_{name}").numel() for name in _PARTS)

    def admit(self, n_classes: int) -> None:
        """Does nothing: targets are numbers."""

    def learn(self, z: Floats, y: Floats) -> None:
        """Takes note of the errors on a batch, learns it and renews the solutions that are due.

        Args:
            z: Features, (B, d).
            y: Targets of about unit variance, (B, o).
        """
        rows, targets = _with_constant(z), torch.from_numpy(y)
        left, weights = (torch.from_numpy(part) for part in fading_weights(self.keeps, len(z)))
        mean, inflation = self._raw(rows)
        squares = (targets - mean).square() / inflation[:, :, None]
        self._note_errors(squares)
        self._counts = left * self._counts + weights.sum(dim=1)
        for h, kept in enumerate(left.tolist()):
            faded = (rows * weights[h, :, None]).T
            self._products[h].addmm_(faded, rows, beta=kept)
            self._targets[h].addmm_(faded, targets, beta=kept)
            self._waits[h] -= len(z)
            if self._waits[h] <= 0:
                self._solve(h)

    def _note_errors(self, squares: Tensor) -> None:
        """Adds squared errors (H, B, o) to the noise."""
        keeps = np.minimum(self.keeps, _NOISE_KEEP)
        left, weights = (torch.from_numpy(part) for part in fading_weights(keeps, squares.shape[1]))
        self._errors = left[:, None] * self._errors + (weights[:, :, None] * squares).sum(dim=1)
        self._n_errors = left * self._n_errors + weights.sum(dim=1)

    def moments(self, z: Floats) -> Floats:
        """Returns mean and variance, (H, B, 2, o), of features (B, d)."""
        mean, inflation = self._raw(_with_constant(z))
        noise = (self._errors + _NOISE_PRIOR) / (self._n_errors + 1)[:, None]
        variance = noise[:, None] * inflation[:, :, None]
        moments: Floats = torch.stack([mean, variance], dim=2).numpy()
        return moments

    def _raw(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Returns means (H, B, o) and by how much the weights' uncertainty inflates the noise (H, B)."""
        whitened = torch.linalg.solve_triangular(self._factors, rows.T, upper=False)
        return rows @ self._weights, 1 + whitened.square().sum(dim=1)

    def _solve(self, h: int) -> None:
        precision = self._products[h] + self._prior.diag()
        factor, info = torch.linalg.cholesky_ex(precision)
        if not int(info):  # else rounding: the older solution stands
            self._factors[h] = factor
            self._weights[h] = torch.cholesky_solve(self._targets[h], factor)
        self._waits[h] = renewal_interval(float(self._counts[h]))

    def state_dict(self) -> State:
        """Returns sums and solutions."""
        return {name: getattr(self, f"_{name}").clone() for name in _PARTS} | {"waits": list(self._waits)}

    def load_state_dict(self, state: State) -> None:
        """Restores them to the bit."""
        for name in _PARTS:
            setattr(self, f"_{name}", state[name].cpu().clone())
        self._waits = list(state["waits"])


_PARTS = ("counts", "products", "targets", "errors", "n_errors", "factors", "weights")


def _with_constant(z: Floats) -> Tensor:
    """Returns features and a constant, (B, d + 1)."""
    return torch.nn.functional.pad(torch.from_numpy(z), (0, 1), value=1.0)
