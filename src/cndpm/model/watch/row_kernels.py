"""Gaussian kernels around rows that are known: a density that needs no experts, with each row judged by the others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST_SHAPED = 512
"""Features up to which kernels have a full covariance: it takes the cube of their number."""

_SHRINKAGE = 0.2
"""Of the kernels' covariance towards a multiple of the identity in units of the columns' ranges."""

_FAR = 100.0
"""Times the median squared distance to the neighbour beyond which a row says nothing about the kernels' shape."""

_GLANCED, _JUDGED = 250, 1000
"""Rows by which the width is sought in large steps, and then in small ones."""


class RowKernels:
    """Gaussian kernels around rows, of covariances of one shape: the fewer rows around, the wider the kernel.

    The shape is that of the differences between nearest neighbours, found in units of the columns' ranges. The width
    is the one under which every row is most likely given the others: first one for all, which gives a density f, then
    one that is multiplied by f to the power of -1 / 2(d + 1) at every row (Abramson, 1982, has 1/2 for any d, which
    was worse on mixtures in three columns, as was one width for all in any number). Rows are (E, d), at least two;
    `leave_one_out` is the log density of each given the others, (E,).
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
        self._variances = _likeliest_variances(squares, rows.shape[1])
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
        constant = 0.5 * d * math.log(2 * math.pi) + self._log_volume
        mean: Floats = _log_kernels(squares, self._variances, d) - np.log(n) - constant
        return mean


def _centre_and_range(rows: Floats) -> tuple[Floats, Floats]:
    """Returns the median and the range of every column, (d,), a few extremes set aside; 1 for constant ones."""
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

    With it come the neighbour of each row, (n,), and the share of each difference in the covariance, (n,): those of
    rows far from all others do not count. Rows (n, d) are in units of the columns' ranges; kernels are no narrower than
    what columns may have been rounded to, (d,). None where there are too many features, or too few rows.
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
    Points are whitened rows, (n, d); the others are what :func:`_shape` returns.
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


def _likeliest_variances(squares: Floats, d: int) -> Floats:
    """Returns the variances of kernels, (n,), under which rows, whose squared distances are (n, n), are most likely."""
    n, widest = len(squares), _typical_square(squares) / d
    # A row farther from all others than rows are from each other says nothing about the width.
    judged = np.nonzero(squares.min(axis=1) <= widest * d)[0]
    with np.errstate(over="ignore"):
        near = squares[judged[:: -(-len(judged) // _JUDGED)]].astype(np.float32)
    narrowest = max(float(np.median(near.min(axis=1))) / d, widest * 1e-6) / 16
    log_widths = np.arange(math.log(narrowest), math.log(widest) + 0.5, 0.5)
    log_width = _likeliest(near[:: -(-len(near) // _GLANCED)], np.ones(n), log_widths, d)
    log_density = _log_kernels(squares, np.full(n, math.exp(log_width)), d)
    sparser = np.clip(np.median(log_density) - log_density, -1e2, 1e2)
    local = np.minimum(np.exp(sparser / (d + 1)), widest / math.exp(log_width))
    return math.exp(_likeliest(near, local, log_width + np.arange(-1.0, 1.1, 0.5), d)) * local


def _typical_square(squares: Floats) -> float:
    """Returns the median squared distance of a row from others, the mean where most rows are the same."""
    glanced, middle = squares[:: -(-len(squares) // _GLANCED)], (len(squares) - 1) // 2
    median = float(np.median(np.partition(glanced, middle, axis=1)[:, middle]))
    return median if median > 0 else max(float(glanced[np.isfinite(glanced)].mean()), 1e-12)


def _likeliest(squares: NDArray[np.float32], local: Floats, log_widths: Floats, d: int) -> float:
    """Returns the log width under which rows are most likely: the top of a parabola through the best of those tried.

    Squared distances from the kernels are (m, n), the kernels' variances in units of the width (n,).
    """
    likelihoods = [float(_log_kernels(squares, math.exp(width) * local, d).mean()) for width in log_widths]
    best = int(np.argmax(likelihoods))
    if not 0 < best < len(log_widths) - 1:
        return float(log_widths[best])
    before, top, after = likelihoods[best - 1 : best + 2]
    step = float(log_widths[1] - log_widths[0])
    return float(log_widths[best]) + 0.5 * step * (after - before) / (2 * top - before - after)


def _log_kernels(squares: NDArray[Any], variances: Floats, d: int) -> Floats:
    """Returns the log of the sum of kernels, (m,), up to a constant, at squared distances (m, n), of variances (n,)."""
    halved, log_norm = -0.5 / variances, -0.5 * d * np.log(variances)
    return _logsumexp(squares * halved.astype(squares.dtype) + log_norm.astype(squares.dtype))


def _logsumexp(values: NDArray[Any]) -> Floats:
    """Returns log sum exp over the last dimension; of few numbers it takes a tenth of what scipy's does."""
    largest = values.max(axis=-1)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        total: Floats = np.log(np.exp(values - largest[..., None]).sum(axis=-1)) + largest
    return total
