"""Bayesian linear regressions over one representation, forgetting at several rates."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from cndpm.experts.pool.forgetting import fading_weights, prior_strength
from cndpm.experts.pool.members import Members
from cndpm.state import tensor
from cndpm.state.expecting import Form

__all__ = ["Regressions"]

_CONSTANT_PRIOR = 1e-3

_NOISE_PRIOR = 0.05
"""Variance that the noise begins with, as of one sample; targets have about unit variance."""

_NOISE_KEEP = 0.99
"""Errors are forgotten at least so fast: those of the first samples say little about the noise."""


class Regressions(Members):
    """M ridge regressions of o targets on d features and a constant, that differ in how fast they forget.

    The noise of each is the mean square of its own errors on batches that it had not learned yet, faded as its samples
    are, each error in units of what the weights' uncertainty foretold: far from the data the variance grows.

    Args:
        n_features: d.
        n_outputs: o.
        keeps: What is left of a sample after the next one, by member; 1 forgets nothing.

    Example:
        >>> z = torch.linspace(-1, 1, 400).double()[:, None]
        >>> model = Regressions(1, 1, keeps=(1.0,))
        >>> for part in z.split(100):
        ...     model.learn(part, 2 * part, (0,))
        >>> round(model.answers(torch.tensor([[0.5]]).double())[0, 0, 0].item(), 1)
        1.0
    """

    def __init__(self, n_features: int, n_outputs: int, keeps: tuple[float, ...]) -> None:
        super().__init__(n_features, 1 + n_outputs, keeps)
        self._prior = torch.full((n_features + 1,), prior_strength(n_features), dtype=torch.float64)
        self._prior[-1] = _CONSTANT_PRIOR
        self.n_outputs = n_outputs
        n, d = len(keeps), n_features + 1
        self._n_errors = torch.zeros(n, dtype=torch.float64)
        self._errors = torch.zeros(n, n_outputs, dtype=torch.float64)
        self._weights = torch.zeros(n, d, n_outputs, dtype=torch.float64)
        self._factors = self._prior.sqrt().diag().repeat(n, 1, 1)

    def admit(self, n_classes: int) -> None:
        """Does nothing: targets are numbers."""

    def answers(self, z: Tensor) -> Tensor:
        """Returns mean and variance, (M, B, 2, o), of features (B, d)."""
        rows = pad(z, (0, 1), value=1.0)
        inflation = 1 + torch.linalg.solve_triangular(self._factors, rows.T, upper=False).square().sum(dim=1)
        return torch.stack([rows @ self._weights, self._noise()[:, None] * inflation[:, :, None]], dim=2)

    def _noise(self) -> Tensor:
        """Returns the variance of every target beside that of the weights, (M, o)."""
        return (self._errors + _NOISE_PRIOR) / (self._n_errors + 1)[:, None]

    def _take_note(self, z: Tensor, y: Tensor, members: Collection[int], answered: Tensor | None) -> None:
        mean, variance = (self.answers(z) if answered is None else answered).unbind(dim=2)
        squares = (y - mean).square() / variance * self._noise()[:, None]  # in units of the weights' uncertainty
        keeps, learning = np.minimum(self.keeps, _NOISE_KEEP), torch.tensor(list(members))
        left, weights = (torch.from_numpy(part)[learning] for part in fading_weights(keeps, len(z)))
        added = (weights[:, :, None] * squares[learning]).sum(dim=1)
        self._errors[learning] = left[:, None] * self._errors[learning] + added
        self._n_errors[learning] = left * self._n_errors[learning] + weights.sum(dim=1)

    def _joined(self, z: Tensor, y: Tensor) -> Tensor:
        return torch.cat([z, torch.ones_like(y[:, :1]), y], dim=1)

    def _solve(self, m: int, sums: Tensor) -> float:
        d = self.n_features + 1
        precision = sums[:d, :d] + self._prior.diag()
        factor, info = torch.linalg.cholesky_ex(precision)
        if not int(info):  # else rounding: the older solution stands
            self._factors[m] = factor
            self._weights[m] = torch.cholesky_solve(sums[:d, d:], factor)
        return float(sums[d - 1, d - 1])

    def _clear_solution(self, m: int) -> None:
        self._n_errors[m], self._errors[m], self._weights[m] = 0, 0, 0
        self._factors[m] = self._prior.sqrt().diag()

    def _append_solution(self) -> None:
        for name, part in self._solutions().items():
            setattr(self, f"_{name}", torch.cat([part, part.new_zeros(1, *part.shape[1:])]))
        self._factors[-1] = self._prior.sqrt().diag()

    def _solutions(self) -> dict[str, Tensor]:
        return {name: getattr(self, f"_{name}") for name in ("weights", "factors", "errors", "n_errors")}

    def _forms(self) -> dict[str, Form]:
        d, o = self.n_features + 1, self.n_outputs
        return {
            "weights": tensor("members", d, o),
            "factors": tensor("members", d, d),
            "errors": tensor("members", o),
            "n_errors": tensor("members"),
        }
