"""Kernels around rows: a density that integrates to one, and rows judged by the others alone."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import gaussian_kde

from cndpm.model.watch.row_kernels import RowKernels, _likeliest_variances


def test_the_density_integrates_to_one():
    kernels = RowKernels(np.random.default_rng(0).normal(size=(200, 2)) * [1, 50])
    x, y = np.meshgrid(np.linspace(-6, 6, 300), np.linspace(-300, 300, 300))
    density = np.exp(kernels.log_density(np.stack([x.ravel(), y.ravel()], axis=1)))
    assert density.sum() * (12 / 299) * (600 / 299) == pytest.approx(1, abs=0.01)


def test_a_kept_row_is_judged_by_the_others():
    rows = np.random.default_rng(0).normal(size=(100, 3))
    kernels = RowKernels(rows)
    others = RowKernels.__new__(RowKernels)
    others.__dict__.update(
        kernels.__dict__, _rows=rows[1:], _points=kernels._points[1:], _variances=kernels._variances[1:]
    )
    np.testing.assert_allclose(kernels.log_density(rows[:1]), others.log_density(rows[:1]))


def test_the_density_does_not_depend_on_the_units():
    rows, x = np.random.default_rng(0).normal(size=(2, 300, 3))
    units = np.array([1e-3, 1.0, 1e4])
    there, here = RowKernels(rows * units).log_density(x * units), RowKernels(rows).log_density(x)
    np.testing.assert_allclose(there + np.log(units).sum(), here, rtol=1e-6)


def test_a_extreme_value_changes_little():
    rows, x = np.random.default_rng(0).normal(size=(2, 300, 3))
    extreme = rows.copy()
    extreme[7, 1] = 1e10
    assert np.abs(RowKernels(extreme).log_density(x) - RowKernels(rows).log_density(x)).mean() < 0.15


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
    expected = np.einsum("ij,ij->i", to_all @ np.linalg.inv(covariance), to_all)
    np.testing.assert_allclose(corrected[i], expected, atol=1e-12)  # its distance to itself is nothing but rounding


def test_widths_are_the_likeliest_and_wider_where_there_are_few_rows():
    """Against a fine search over one width for all, with the local factors of the density under it written out."""
    x = np.concatenate([np.random.default_rng(0).normal(0, 0.2, 200), np.random.default_rng(1).normal(4, 2, 200)])
    squares = (x[:, None] - x) ** 2
    np.fill_diagonal(squares, np.inf)

    def log_densities(variances):
        return logsumexp(-0.5 * squares / variances - 0.5 * np.log(variances), axis=1)

    def likeliest(local):
        return max(np.geomspace(1e-3, 10, 200), key=lambda v: log_densities(v * local).mean())

    log_density = log_densities(np.full(400, likeliest(np.ones(400))))
    local = np.exp((np.median(log_density) - log_density) / 2)
    variances = _likeliest_variances(squares, 1)
    usual = local < 5 * np.median(local)  # kernels are no wider than rows are apart
    np.testing.assert_allclose((variances / local)[usual], likeliest(local), rtol=0.2)
    assert np.median(variances[200:]) > 2 * np.median(variances[:200])


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [300, 1000])
def test_rows_of_two_clusters_are_as_likely_as_under_scipys_kernels(d, n):
    rng = np.random.default_rng(0)

    def drawn(n):
        which = rng.random(n)[:, None] < 0.3
        return np.where(which, rng.normal(0, 1, size=(n, d)), rng.normal(9, 0.5, size=(n, d)))

    rows, x = drawn(n), drawn(1000)
    assert RowKernels(rows).log_density(x).mean() > gaussian_kde(rows.T).logpdf(x.T).mean() + 0.05


@pytest.mark.parametrize("d", [1, 2, 3])
def test_rows_of_one_cluster_are_as_likely_as_under_scipys_kernels(d):
    """For which the width of scipy's kernels is made."""
    rows, x = np.random.default_rng(0).normal(size=(2, 1000, d))
    assert RowKernels(rows).log_density(x).mean() > gaussian_kde(rows.T).logpdf(x.T).mean() - 0.02


def test_a_row_far_from_all_others_says_nothing_about_the_width():
    rows, x = np.random.default_rng(0).normal(size=(2, 300, 1))
    far = np.concatenate([rows, [[1e3]]])
    np.testing.assert_allclose(RowKernels(far).log_density(x), RowKernels(rows).log_density(x), atol=0.5)


@pytest.mark.parametrize("rows", [np.ones((5, 1)), np.array([[0.0], [1.0], [1e30]]), np.eye(2), np.zeros((60, 3))])
def test_rows_that_are_few_alike_or_huge_have_a_density(rows):
    assert np.isfinite(RowKernels(rows).leave_one_out).all()
