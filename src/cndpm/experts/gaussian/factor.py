"""One factorisation of the shared covariance, and vectors as it sees them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from cndpm.experts.gaussian.conjugate import log_elliptical
from cndpm.experts.gaussian.statistics import pack_symmetric, unpack_triangle
from cndpm.state import State
from cndpm.threads import spread

__all__ = ["Factor", "Groups", "Whitened", "finite", "maybe_infinite", "prior_strength", "typical_margins"]


_COLUMNS = 2048
"""Columns of an inverse that are solved for together."""


@dataclass(eq=False)
class Factor:
    """One factorisation of the shared covariance and what follows from it.

    Attributes:
        cholesky: L, lower triangular, (d, d).
        log_det: log det Sigma.
        anchors: (J + 2, d), float64: L^-1 s_j of every component, kept in step with the statistics; zeros, the sums of
            a component without samples, which is what "new" is; and last L^-1 (m0 - origin).
        kappa: Prior pseudo-samples.
        tail: Degrees of freedom of the components' tails; inf for normal ones.
        count: Weight of the samples behind the covariance.
        degrees: Its degrees of freedom.
        shrinkage: lambda of the covariance.
    """

    cholesky: Tensor
    log_det: float
    anchors: Tensor
    kappa: float
    tail: float
    count: float
    degrees: float
    shrinkage: float
    _inverse: Tensor | None = field(default=None, init=False, repr=False)

    @property
    def sums(self) -> Tensor:
        """L^-1 s_j, (J, d), a view."""
        return self.anchors[:-2]

    @property
    def mean(self) -> Tensor:
        """L^-1 (m0 - origin), (d,), a view."""
        return self.anchors[-1]

    def to(self, dtype: torch.dtype) -> Factor:
        """The same with L in another precision."""
        return replace(self, cholesky=self.cholesky.to(dtype))

    def whiten(self, shifted: Tensor) -> Tensor:
        """L^-1 z for rows z (B, d), float64."""
        rows = shifted.to(self.cholesky.dtype)
        if rows.device.type == "cuda" and rows.dtype is torch.float32:
            return (rows @ self.inverse().T).double()
        with spread(rows.numel() * rows.shape[1]):
            whitened: Tensor = torch.linalg.solve_triangular(self.cholesky, rows.T, upper=False)
        return whitened.T.double()

    def inverse(self) -> Tensor:
        """L^-1, (d, d), kept: a GPU multiplies by it in a twentieth of the time that it takes to solve for few rows."""
        if self._inverse is None:
            lower, inverse = self.cholesky.double(), torch.empty_like(self.cholesky)
            for columns in torch.split(torch.arange(len(lower), device=lower.device), _COLUMNS):
                unit = torch.zeros(len(lower), len(columns), dtype=lower.dtype, device=lower.device)
                unit[columns, torch.arange(len(columns), device=lower.device)] = 1
                inverse[:, columns] = torch.linalg.solve_triangular(lower, unit, upper=False).to(inverse.dtype)
            self._inverse = inverse
        return self._inverse

    def precision_times(self, shifted: Tensor) -> Tensor:
        """Sigma^-1 z for rows z (B, d), float64."""
        whitened = self.whiten(shifted).to(self.cholesky.dtype)
        with spread(whitened.numel() * whitened.shape[1]):
            back: Tensor = torch.linalg.solve_triangular(self.cholesky.mT, whitened.T, upper=True)
        return back.T.double()

    def state_dict(self) -> State:
        """Everything as tensors and plain values."""
        return {
            "cholesky": pack_symmetric(self.cholesky),
            "log_det": self.log_det,
            "anchors": self.anchors.clone(),
            "kappa": self.kappa,
            "tail": finite(self.tail),
            "count": self.count,
            "degrees": self.degrees,
            "shrinkage": self.shrinkage,
        }

    @classmethod
    def from_state(cls, state: State) -> Factor:
        """The factor of :meth:`state_dict`, to the bit."""
        return cls(
            cholesky=unpack_triangle(state["cholesky"], state["anchors"].shape[1]),
            log_det=state["log_det"],
            anchors=state["anchors"].clone(),
            kappa=state["kappa"],
            tail=maybe_infinite(state["tail"]),
            count=state["count"],
            degrees=state["degrees"],
            shrinkage=state["shrinkage"],
        )

    def add_components(self, n: int) -> None:
        """Appends n empty components."""
        self.anchors = torch.cat([self.sums, self.anchors.new_zeros(n, self.anchors.shape[1]), self.anchors[-2:]])


class Groups(NamedTuple):
    """Components of a memory.

    Attributes:
        factor: The factor they were made with.
        duals: Sigma^-1 mu_g, (G, d).
        squares: mu_g Sigma^-1 mu_g, (G,).
        kappas: kappa0 + n_g, (G,).
    """

    factor: Factor
    duals: Tensor
    squares: Tensor
    kappas: Tensor


class Whitened:
    """Rows as routing and learning need them.

    Args:
        shifted: z - origin, (B, d), float64.
        rows: L^-1 (z - origin), (B, d), float64.
    """

    def __init__(self, shifted: Tensor, rows: Tensor) -> None:
        self.shifted, self.rows = shifted, rows

    def __getitem__(self, part: slice) -> Whitened:
        return Whitened(self.shifted[part], self.rows[part])


def prior_strength(sums: Tensor, counts: Tensor, mean: Tensor) -> float:
    """kappa0 by moments: 1 / kappa0 is the variance of the whitened means about m0, less what their estimation adds.

    At most a tenth of a component's samples, so that few of them, whose means lie within their error, are not all
    taken for one.
    """
    present = counts > 0
    if int(present.sum()) < 2:
        return 1.0
    spread = (sums[present] / counts[present, None] - mean).square().mean(dim=1) - 1 / counts[present]
    n = present.sum()
    kappa = 1 / (spread.mean() * n / (n - 1)).clamp(1e-6, 1e6)
    return float(torch.minimum(kappa, 0.1 * counts[present].mean()))


def typical_margins(factor: Factor, counts: Tensor) -> Tensor:
    """What log p(z | j) - log p(z | new) of a sample of component j is like by the factor, (J,), on the host.

    It lies at squared distance d from its mean and at d + r^2 from the prior's, where r is the distance of the two.

    Args:
        factor: Which one.
        counts: n_j, (J,).
    """
    n, d = counts.to(factor.anchors.device), len(factor.mean)
    kappas = n + factor.kappa
    apart = ((factor.sums - n[:, None] * factor.mean) / kappas[:, None]).square().sum(dim=1)
    known = log_elliptical(torch.full_like(apart, d), factor.log_det, d, 1 + 1 / kappas, factor.tail)
    scale = torch.full_like(apart, 1 + 1 / factor.kappa)
    return (known - log_elliptical(d + apart, factor.log_det, d, scale, factor.tail)).cpu()


def finite(tail: float) -> float | None:
    """A tail as JSON can hold it: None for inf."""
    return None if math.isinf(tail) else tail


def maybe_infinite(tail: float | None) -> float:
    """A tail from what :func:`finite` made of it."""
    return math.inf if tail is None else tail
