"""Gaussian kernels around rows that are known: a density that needs no experts, with each row judged by the others."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowKernels", "resolution"]

Floats = NDArray[np.float64]

_MOST_SHAPED = 512
"""Features up to which kernels have a full covariance: it takes the cube of their number."""

_SHRINKAGE = 0.2
"""Of the kernels' covariance towards a multiple of the identity in units of the columns' ranges."""

_FAR = 100.0
"""Times the median squared distance to the neighbour beyond which a row says nothing about the kernels' shape."""

_NEAREST = 64
"""Neighbours that are taken into account where the width is chosen."""

_JUDGED = 250
"""Rows by which the width is chosen."""


class RowKernels:
    """Gaussian kernels around rows, of one covariance.

    The covariance has the shape of the differences between nearest neighbours, found in units of the columns' ranges.
    Its size is the one under which every row is most likely given the others.

    Args:
        rows: (E, d), at least two.

    Attributes:
        leave_one_out: The log density of each row given the others, (E,).

    Example:
        >>> kernels = RowKernels(np.random.default_rng(0).normal(size=(200, 2)))
        >>> near, far = kernels.log_density(np.array([[0.0, 0.0], [9.0, 9.0]]))
        >>> bool(near > far + 10)
        True
    """

    def __init__(self, rows: NDArray[np.floating]) -> None:
        self._rows: Floats = rows.astype(np.float64)
        self._centre, scale = _centre_and_range(self._rows)
        shaped = _shape((self._rows - self._centre) / scale, resolution(self._rows) / scale)
        self._transform = (np.eye(len(scale)) if shaped is None else shaped[0]) / scale[:, None]
        self._log_volume = -float(np.linalg.slogdet(self._transform)[1])
        self._points = (self._rows - self._centre) @ self._transform
        squares = _squares(self._points, self._points)
        if shaped is not None:
            squares += _without_own(self._points, *shaped[1:])
        np.fill_diagonal(squares, np.inf)
        judged = squares[:: -(-len(rows) // _JUDGED)]
        nearest = np.partition(judged, min(_NEAREST, len(rows) - 1) - 1, axis=1)[:, : min(_NEAREST, len(rows) - 1)]
        self._variance = _likeliest_variance(nearest, rows.shape[1])
        self.leave_one_out = self._log_mean(squares, len(squares) - 1)

    def log_density(self, x: NDArray[np.floating]) -> Floats:
        """Returns the log density of rows (n, d): (n,). A row that is itself kept is judged by the others."""
        x = x.astype(np.float64)
        squares = _squares((x - self._centre) @ self._transform, self._points)
        nearest = squares.argmin(axis=1)
        kept = np.nonzero((x == self._rows[nearest]).all(axis=1))[0]
        squares[kept, nearest[kept]] = np.inf
        n = np.full(len(x), float(len(self._points)))
        n[kept] -= 1
        return self._log_mean(squares, n)

    def leave_one_out_at(self, x: NDArray[np.floating]) -> Floats:
        """Returns the log density of E rows, one beside each of the kept ones, given the others, (E,)."""
        squares = _squares((x.astype(np.float64) - self._centre) @ self._transform, self._points)
        np.fill_diagonal(squares, np.inf)
        return self._log_mean(squares, len(squares) - 1)

    def _log_mean(self, squares: Floats, n: float | Floats) -> Floats:
        d = self._points.shape[1]
        log_kernels = _logsumexp(-0.5 * squares / self._variance)
        mean: Floats = log_kernels - np.log(n) - 0.5 * d * math.log(2 * math.pi * self._variance) - self._log_volume
        return mean


def _centre_and_range(rows: Floats) -> tuple[Floats, Floats]:
    """Returns the median and the range of every column, (d,), a few wild values set aside; 1 for constant ones."""
    low, centre, high = np.quantile(rows, [0.05, 0.5, 0.95], axis=0)
    reach = np.where(high > low, 2 * (high - low), np.inf)
    extent = np.ptp(np.clip(rows, centre - reach, centre + reach), axis=0)
    return centre, np.where(extent > 0, extent, 1.0)


def resolution(rows: NDArray[np.floating]) -> Floats:
    """Returns the least difference between two values of every column, (d,): what it may have been rounded to."""
    gaps = np.diff(np.sort(rows, axis=0), axis=0, append=np.inf)
    least = np.where(gaps > 0, gaps, np.inf).min(axis=0)
    return np.where(np.isfinite(least), least, 0.0).astype(np.float64)


def _shape(unit: Floats, rounded: Floats) -> tuple[Floats, NDArray[np.int64], Floats] | None:
    """Returns a matrix (d, d) that whitens the differences between nearest neighbours.

    Args:
        unit: Rows in units of the columns' ranges, (n, d).
        rounded: What columns may have been rounded to, (d,): kernels are no narrower.

    Returns:
        The matrix, the neighbour of each row, (n,), and the share of each difference in the covariance, (n,): those of
        rows far from all others do not count. None where there are too many features, or too few rows.
    """
    n, d = unit.shape
    if d > _MOST_SHAPED or n < 3:
        return None
    squares = _squares(unit, unit)
    np.fill_diagonal(squares, np.inf)
    neighbour, nearest = squares.argmin(axis=1), squares.min(axis=1)
    counts = nearest <= _FAR * np.median(nearest)
    differences = (unit - unit[neighbour])[counts]
    covariance = differences.T @ differences / (2 * counts.sum())
    size = max(float(np.trace(covariance)) / d, 1e-12)
    shrunk = (1 - _SHRINKAGE) * covariance + np.diag(_SHRINKAGE * size + rounded**2 / 12)
    share = counts * (1 - _SHRINKAGE) / (2 * counts.sum())
    return np.linalg.inv(np.linalg.cholesky(shrunk)).T, neighbour, share


def _without_own(points: Floats, neighbour: NDArray[np.int64], share: Floats) -> Floats:
    """Returns what squared distances gain where a row's own differences are left out of the covariance, (n, n).

    The covariance was made to fit them, so a row would look more familiar than one that comes later. Leaving out a
    term c v v' changes the squared length of u under the inverse by c (u'v)^2 / (1 - c v'v) (Sherman and Morrison).

    Args:
        points: Whitened rows, (n, d).
        neighbour: The neighbour of each, (n,).
        share: Of its difference from the neighbour in the covariance, (n,).
    """
    own = points - points[neighbour]
    # Two rows that are each other's neighbours count twice.
    share = share * (1 + (neighbour[neighbour] == np.arange(len(points))))
    left = np.maximum(1 - share * np.einsum("ij,ij->i", own, own), 0.1)
    along = np.einsum("ij,ij->i", own, points)[:, None] - own @ points.T
    gained: Floats = (share / left)[:, None] * along**2
    return gained


def _squares(a: Floats, b: Floats) -> Floats:
    """Returns squared distances of all pairs, (n, m)."""
    lengths = np.einsum("ij,ij->i", b, b) - 2 * a @ b.T
    squares: Floats = np.maximum(lengths + np.einsum("ij,ij->i", a, a)[:, None], 0.0)
    return squares


def _likeliest_variance(nearest: Floats, d: int) -> float:
    """Returns the variance of kernels under which rows are most likely given their neighbours.

    Args:
        nearest: Squared distances to the nearest other rows, (E, m).
        d: Number of features.
    """
    typical = max(float(np.median(nearest.min(axis=1))) / d, float(nearest.mean()) / d * 1e-6, 1e-12)
    candidates = typical * 2.0 ** np.arange(-4, 5, 0.5)
    far = nearest.min(axis=1) > _FAR * typical * d
    near = nearest[~far]
    likelihoods = [float(np.mean(_logsumexp(-0.5 * near / v))) - 0.5 * d * math.log(v) for v in candidates]
    return float(candidates[int(np.argmax(likelihoods))])


def _logsumexp(values: Floats) -> Floats:
    """Returns log sum exp over the last dimension; of few numbers it takes a tenth of what scipy's does."""
    largest = values.max(axis=-1)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        total: Floats = np.log(np.exp(values - largest[..., None]).sum(axis=-1)) + largest
    return total
