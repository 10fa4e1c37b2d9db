"""One factorisation of the shared covariance, and vectors as it sees them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.gaussian.conjugate import Values, log_elliptical
from cndpm.experts.gaussian.statistics import pack_symmetric, unpack_triangle
from cndpm.state import State, expect, maybe, number, tensor
from cndpm.threads import spread

__all__ = [
    "Factor",
    "Whitened",
    "finite",
    "maybe_infinite",
    "prior_strength",
    "typical_cross_margins",
    "typical_margins",
]

_MOST = 1e15
"""No number of a factor is larger, unless a file was made up."""


_COLUMNS = 2048
"""Columns of an inverse that are solved for together."""


@dataclass(eq=False)
class Factor:
    """One factorisation of the shared covariance, with all other quantities that densities need.

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

    Example:
        >>> factor = Factor(
        ...     cholesky=2 * torch.eye(2), log_det=4 * math.log(2), anchors=torch.zeros(3, 2).double(), kappa=1.0,
        ...     tail=math.inf, count=10.0, degrees=9.0, shrinkage=0.1,
        ... )
        >>> factor.whiten(torch.tensor([[2.0, 4.0]]))
        tensor([[1., 2.]], dtype=torch.float64)
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
        """Returns this factor with L in another precision."""
        return replace(self, cholesky=self.cholesky.to(dtype))

    def whiten(self, shifted: Tensor) -> Tensor:
        """Returns L^-1 z for rows z (B, d), float64."""
        rows = shifted.to(self.cholesky.dtype)
        if rows.device.type == "cuda" and rows.dtype is torch.float32:
            return (rows @ self.inverse().T).double()
        with spread(rows.numel() * rows.shape[1]):
            whitened: Tensor = torch.linalg.solve_triangular(self.cholesky, rows.T, upper=False)
        return whitened.T.double()

    def inverse(self) -> Tensor:
        """Returns L^-1, (d, d), and keeps it: a GPU multiplies by it 20 times as fast as it solves for few rows."""
        if self._inverse is None:
            lower, inverse = self.cholesky.double(), torch.empty_like(self.cholesky)
            for columns in torch.split(torch.arange(len(lower), device=lower.device), _COLUMNS):
                unit = torch.zeros(len(lower), len(columns), dtype=lower.dtype, device=lower.device)
                unit[columns, torch.arange(len(columns), device=lower.device)] = 1
                inverse[:, columns] = torch.linalg.solve_triangular(lower, unit, upper=False).to(inverse.dtype)
            self._inverse = inverse
        return self._inverse

    def state_dict(self) -> State:
        """Returns everything as tensors and plain values."""
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
        """Returns the factor of :meth:`state_dict`, to the bit."""
        positive = number(0, _MOST)
        forms = {"log_det": number(-_MOST, _MOST), "kappa": positive, "count": positive, "degrees": positive}
        forms |= {"shrinkage": number(0, 1), "tail": maybe(positive), "anchors": tensor("anchors", "d")}
        d = expect(state, forms)["d"]
        expect(state, {"cholesky": tensor(d * (d + 1) // 2, dtype=(torch.float32, torch.float64))})
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

    def some_anchors(self, components: NDArray[np.int64] | None) -> Tensor:
        """Returns the anchors of some components (S,), or of all, and the two last ones, (S + 2, d)."""
        if components is None:
            return self.anchors
        n = len(self.anchors)
        return self.anchors[torch.from_numpy(np.append(components, [n - 2, n - 1])).to(self.anchors.device)]

    def add(self, weights: Tensor, whitened: Tensor, components: NDArray[np.int64] | None) -> None:
        """Moves the anchors of components that learn rows.

        Args:
            weights: (B, J), or (B, S) for some of the components.
            whitened: L^-1 z of the rows, (B, d).
            components: The components that the weights are for, (S,); None for all.
        """
        if components is None:
            self.sums.addmm_(weights.T, whitened)
        else:
            self.anchors.index_add_(0, torch.from_numpy(components).to(self.anchors.device), weights.T @ whitened)

    def add_components(self, n: int) -> None:
        """Appends n empty components."""
        self.anchors = torch.cat([self.sums, self.anchors.new_zeros(n, self.anchors.shape[1]), self.anchors[-2:]])


class Whitened:
    """Rows of features, shifted for learning and whitened for routing; sliced together.

    Args:
        shifted: z - origin, (B, d), float64.
        rows: L^-1 (z - origin), (B, d), float64.

    Example:
        >>> whitened = Whitened(torch.zeros(5, 2), torch.zeros(5, 2))
        >>> whitened[1:3].rows.shape
        torch.Size([2, 2])
    """

    def __init__(self, shifted: Tensor, rows: Tensor) -> None:
        self.shifted, self.rows = shifted, rows

    def __getitem__(self, part: slice) -> Whitened:
        return Whitened(self.shifted[part], self.rows[part])


def prior_strength(sums: Values, counts: Values, mean: Values) -> float:
    """Estimates kappa0 by moments: 1 / kappa0 is the variance of the whitened means about m0, less estimation error.

    The estimate is at most a tenth of a component's samples, so that components of few samples, whose means lie within
    their error, are not all taken for one.

    Args:
        sums: Whitened sums of the components, (J, d).
        counts: Samples of the components, (J,).
        mean: Whitened m0, (d,).
    """
    present = counts > 0
    if not present.all():
        sums, counts = sums[present], counts[present]
    n = len(counts)
    if n < 2:
        return 1.0
    spreads = ((sums / counts[:, None] - mean) ** 2).sum(1) / sums.shape[1] - 1 / counts
    spread_of_means = float(spreads.sum()) / n * n / (n - 1)
    return min(1 / min(max(spread_of_means, 1e-6), 1e6), 0.1 * float(counts.sum()) / n)


def typical_margins(factor: Factor, counts: Tensor) -> Tensor:
    """Returns log p(z | j) - log p(z | new) of a typical sample of each component j, (J,), on the host.

    A typical sample lies at squared distance d from the component's mean and at d + r^2 from the prior's, where r is
    the distance of the two means.

    Args:
        factor: Of the covariance, with J components.
        counts: n_j, (J,).
    """
    n, d = counts.to(factor.anchors.device), len(factor.mean)
    kappas = n + factor.kappa
    apart = ((factor.sums - n[:, None] * factor.mean) / kappas[:, None]).square().sum(dim=1)
    known = log_elliptical(torch.full_like(apart, d), factor.log_det, d, 1 + 1 / kappas, factor.tail)
    scale = torch.full_like(apart, 1 + 1 / factor.kappa)
    return (known - log_elliptical(d + apart, factor.log_det, d, scale, factor.tail)).cpu()


def typical_cross_margins(factor: Factor, counts: Tensor, components: Tensor) -> Tensor:
    """Returns log p(z | i) - log p(z | new) of a typical sample z of component j, [i, j], (S, S), on the host.

    A typical sample of j lies at squared distance d + r^2 from a mean at distance r of j's.

    Args:
        factor: Of the covariance, with J components.
        counts: n_j, (J,).
        components: The components compared, (S,).
    """
    kappas, d = counts.to(factor.anchors.device)[components] + factor.kappa, len(factor.mean)
    means = (factor.sums[components] + factor.kappa * factor.mean) / kappas[:, None]
    apart = torch.cdist(means, means, compute_mode="donot_use_mm_for_euclid_dist").square()
    known = log_elliptical(d + apart, factor.log_det, d, (1 + 1 / kappas)[:, None], factor.tail)
    from_prior = d + (means - factor.mean).square().sum(dim=1)
    scale = torch.full_like(from_prior, 1 + 1 / factor.kappa)
    return (known - log_elliptical(from_prior, factor.log_det, d, scale, factor.tail)).cpu()


def finite(tail: float) -> float | None:
    """Returns a tail as JSON can hold it: None for inf."""
    return None if math.isinf(tail) else tail


def maybe_infinite(tail: float | None) -> float:
    """Undoes :func:`finite`."""
    return math.inf if tail is None else tail
