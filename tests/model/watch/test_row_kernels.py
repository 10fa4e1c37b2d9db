"""Kernels around rows: a density that integrates to one, and rows judged by the others alone."""

import numpy as np
import pytest

from cndpm.model.watch.row_kernels import RowKernels, _likeliest_variance


def test_the_density_integrates_to_one():
    kernels = RowKernels(np.random.default_rng(0).normal(size=(200, 2)) * [1, 50])
    x, y = np.meshgrid(np.linspace(-6, 6, 300), np.linspace(-300, 300, 300))
    density = np.exp(kernels.log_density(np.stack([x.ravel(), y.ravel()], axis=1)))
    assert density.sum() * (12 / 299) * (600 / 299) == pytest.approx(1, abs=0.01)


def test_a_kept_row_is_judged_by_the_others():
    rows = np.random.default_rng(0).normal(size=(100, 3))
    kernels = RowKernels(rows)
    others = RowKernels.__new__(RowKernels)
    others.__dict__.update(kernels.__dict__, _rows=rows[1:], _points=kernels._points[1:])
    np.testing.assert_allclose(kernels.log_density(rows[:1]), others.log_density(rows[:1]))


def test_the_density_does_not_depend_on_the_units():
    rows, x = np.random.default_rng(0).normal(size=(2, 300, 3))
    units = np.array([1e-3, 1.0, 1e4])
    there, here = RowKernels(rows * units).log_density(x * units), RowKernels(rows).log_density(x)
    np.testing.assert_allclose(there + np.log(units).sum(), here, rtol=1e-6)


def test_a_wild_value_changes_little():
    rows, x = np.random.default_rng(0).normal(size=(2, 300, 3))
    wild = rows.copy()
    wild[7, 1] = 1e10
    assert np.abs(RowKernels(wild).log_density(x) - RowKernels(rows).log_density(x)).mean() < 0.15


def test_leaving_out_its_own_differences_is_what_a_covariance_without_them_gives():
    """The correction against the covariance made anew without the row's own difference."""
    from cndpm.model.watch import row_kernels as module

    unit = np.random.default_rng(0).normal(size=(60, 8))
    whitening, neighbour, share = module._shape(unit, np.zeros(8))
    i = next(k for k in range(60) if neighbour[neighbour[k]] != k)
    points = unit @ whitening
    corrected = module._squares(points, points) + module._without_own(points, neighbour, share)
    own = unit[i] - unit[neighbour[i]]
    covariance = np.linalg.inv(whitening @ whitening.T) - (1 - module._SHRINKAGE) * np.outer(own, own) / 120
    to_all = unit[i] - unit
    np.testing.assert_allclose(corrected[i], np.einsum("ij,ij->i", to_all @ np.linalg.inv(covariance), to_all))


def test_the_width_is_the_likeliest():
    nearest = np.random.default_rng(0).chisquare(3, size=(400, 1)) * 0.7
    d = 3
    variance = _likeliest_variance(nearest, d)
    assert variance == pytest.approx(nearest.mean() / d, rel=0.25)  # of one neighbour each: the mean squared distance
