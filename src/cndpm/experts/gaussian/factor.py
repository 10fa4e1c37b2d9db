"""One factorisation of the shared covariance, vectors as it sees them, and the densities that routing needs.

Component j has mu_j ~ N(m0, Sigma / kappa0). After n samples with mean z̄ its predictive density is
N(mu_n, (1 + 1 / kappa_n) Sigma) with kappa_n = kappa0 + n and mu_n = (kappa0 m0 + n z̄) / kappa_n; see section 8 of
Murphy, "Conjugate Bayesian analysis of the Gaussian distribution" (2007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.gaussian.statistics import pack_symmetric, unpack_triangle
from cndpm.state import State, StateError, expect, maybe, number, tensor
from cndpm.threads import spread

_MOST = 1e15
"""No number of a factor is larger, unless a file was made up."""

_NUMBERS = ("log_det", "kappa", "count", "degrees", "shrinkage")
"""Fields that are plain numbers."""

_COLUMNS = 2048
"""Columns of an inverse that are solved for together."""

Floats = NDArray[np.float64]
Values = TypeVar("Values", Tensor, NDArray[np.float64])
"""Tensors, or arrays: a batch is so small that on the host starting a tensor's operation costs more than doing it."""


@dataclass(eq=False)
class Factor:
    """One factorisation Sigma = L L' of the shared covariance, with all other quantities that densities need."""

    cholesky: Tensor  # L, lower triangular, (d, d)
    log_det: float  # of Sigma
    # (J + 2, d), float64: L^-1 s_j of every component, kept in step with the statistics; zeros, the sums of a component
    # without samples, which is what "new" is; and last L^-1 (m0 - origin)
    anchors: Tensor
    kappa: float  # prior pseudo-samples
    tail: float  # degrees of freedom of the components' tails; inf for normal ones
    count: float  # weight of the samples behind the covariance
    degrees: float  # its degrees of freedom
    shrinkage: float  # lambda of the covariance
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
        tensors = {"cholesky": pack_symmetric(self.cholesky), "anchors": self.anchors.clone()}
        return {**tensors, "tail": finite(self.tail), **{name: getattr(self, name) for name in _NUMBERS}}

    @classmethod
    def from_state(cls, state: State) -> Factor:
        positive = number(0, _MOST)
        forms = {"log_det": number(-_MOST, _MOST), "kappa": positive, "count": positive, "degrees": positive}
        forms |= {"shrinkage": number(0, 1), "tail": maybe(number(2.01)), "anchors": tensor("anchors", "d")}
        d = expect(state, forms)["d"]
        expect(state, {"cholesky": tensor(d * (d + 1) // 2, dtype=(torch.float32, torch.float64))})
        cholesky = unpack_triangle(state["cholesky"], d)
        if not (cholesky.diagonal() > 0).all() or (state["anchors"].abs() > _MOST**2).any():
            raise StateError(f"a factor has a positive diagonal, and anchors of at most {_MOST**2:g}; got others")
        tail, numbers = math.inf if state["tail"] is None else state["tail"], {name: state[name] for name in _NUMBERS}
        return cls(cholesky=cholesky, anchors=state["anchors"].clone(), tail=tail, **numbers)

    def some_anchors(self, components: NDArray[np.int64] | None) -> Tensor:
        """Returns the anchors of some components (S,), or of all, and the two last ones, (S + 2, d)."""
        if components is None:
            return self.anchors
        n = len(self.anchors)
        return self.anchors[torch.from_numpy(np.append(components, [n - 2, n - 1])).to(self.anchors.device)]

    def add(self, weights: Tensor, whitened: Tensor, components: NDArray[np.int64] | None) -> None:
        """Moves the anchors of components, all or some (S,), that learn whitened rows (B, d) by weights (B, J or S)."""
        if components is None:
            self.sums.addmm_(weights.T, whitened)
        else:
            self.anchors.index_add_(0, torch.from_numpy(components).to(self.anchors.device), weights.T @ whitened)

    def add_components(self, n: int) -> None:
        """Appends n empty components."""
        self.anchors = torch.cat([self.sums, self.anchors.new_zeros(n, self.anchors.shape[1]), self.anchors[-2:]])


class Whitened:
    """Rows of features, shifted for learning, and whitened for routing; (B, d), float64, sliced together."""

    def __init__(self, shifted: Tensor, rows: Tensor) -> None:
        self.shifted, self.rows = shifted, rows

    def __getitem__(self, part: slice) -> Whitened:
        return Whitened(self.shifted[part], self.rows[part])


class Products(NamedTuple):
    """Inner products of B rows and J + 2 anchors."""

    squares: Floats  # of the rows and themselves, (B,)
    inner: Floats  # of rows and anchors, (B, J + 2)
    to_mean: Floats  # of anchors and the last of them, the prior mean, (J + 2,)
    lengths: Floats  # squared, of the anchors, (J + 2,)

    @classmethod
    def of(cls, rows: Tensor, anchors: Tensor) -> Products:
        """Multiplies rows (B, d) and anchors (J + 2, d)."""
        of_rows, inner, of_anchors = gram(rows, anchors)
        return cls(of_rows.diagonal(), inner, of_anchors[:, -1], of_anchors.diagonal())

    @classmethod
    def apart(cls, rows: Tensor, anchors: Tensor) -> Products:
        """Computes the same without products of anchors with each other: linear in their number."""
        products = (rows.square().sum(dim=1), rows @ anchors.T, anchors @ anchors[-1], anchors.square().sum(dim=1))
        return cls(*(product.cpu().numpy() for product in products))


def gram(rows: Tensor, anchors: Tensor) -> tuple[Floats, Floats, Floats]:
    """Multiplies rows with rows, rows with anchors, and anchors with anchors; on the host.

    On a GPU every operation costs its start and every copy a wait, so all are one.
    """
    n, vectors = len(rows), torch.cat([rows, anchors])
    products = (vectors @ vectors.T).cpu().numpy()
    return products[:n, :n], products[:n, n:], products[n:, n:]


def host_values(tensor: Tensor) -> Any:
    """Returns a tensor of the host as an array that shares its numbers; one of another device as it is."""
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def log_elliptical(squared_distance: Values, log_det: float, n_dims: int, scale: Values, tail: float) -> Values:
    """Returns the log density with mean mu and covariance scale * Sigma, elementwise.

    `squared_distance` is Mahalanobis' under Sigma of `n_dims` dimensions, (...). Normal for tail = inf. Otherwise
    Student's t with `tail` > 2 degrees of freedom: a normal whose covariance every sample multiplies by a factor of its
    own. In many dimensions real samples have such a factor, and without it the widest component, not the nearest,
    explains those with a large one.
    """
    module: Any = torch if isinstance(squared_distance, Tensor) else np
    log_density: Values
    if math.isinf(tail):
        spread = n_dims * (math.log(2 * math.pi) + module.log(scale)) + log_det
        log_density = -0.5 * (spread + squared_distance / scale)
        return log_density
    shape = scale * ((tail - 2) / tail)
    constant = math.lgamma((tail + n_dims) / 2) - math.lgamma(tail / 2) - 0.5 * n_dims * math.log(tail * math.pi)
    spread = 0.5 * (log_det + n_dims * module.log(shape))
    far = module.log1p(squared_distance / (shape * tail))
    log_density = constant - spread - 0.5 * (tail + n_dims) * far
    return log_density


def log_components(
    products: tuple[Values, Values, Values, Values],
    kappas: Values,
    *,
    kappa: float,
    log_det: float,
    n_dims: int,
    tail: float,
) -> Values:
    """Returns log densities of components that share a covariance and, last, of "new", (B, J + 1).

    The products are those of whitened rows and anchors: the sums of the components, zeros, and the prior mean. `kappas`
    are kappa0 + n_j and, last, kappa0, (J + 1,).
    """
    squares, inner, to_mean, lengths = products
    cross = (inner[:, :-1] + kappa * inner[:, -1:]) / kappas
    of_means = (lengths[:-1] + 2 * kappa * to_mean[:-1] + kappa**2 * lengths[-1]) / kappas**2
    distance = squares[:, None] - 2 * cross + of_means
    distance = distance * (distance > 0)  # clipping an array takes longer
    return log_elliptical(distance, log_det, n_dims, 1 + 1 / kappas, tail)


def finite(tail: float) -> float | None:
    """Returns a tail as JSON can hold it: None for inf."""
    return None if math.isinf(tail) else tail
