"""Whether a mean of ours differs from a published one by more than noise."""

import math

import pytest
from scipy.optimize import brentq
from scipy.stats import t, ttest_ind_from_stats

from cndpm.paper.experiment import Published


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("difference", [0.05, 0.2, 0.4, 0.6, 0.9, 1.5])
def test_two_means_with_errors_are_compared_as_welch_does(n, difference):
    error, published = 0.15, Published(93.23, 0.09)
    test = ttest_ind_from_stats(
        93.23 + difference, error * math.sqrt(n), n, 93.23, 0.09 * math.sqrt(10), 10, equal_var=False
    )
    assert published.differs_from(93.23 + difference, error, n) == (test.pvalue < 0.05)
    assert published.differs_from(93.23 - difference, error, n) == (test.pvalue < 0.05)


def test_a_single_run_is_held_against_the_spread_of_the_papers_runs():
    bound = float(t.ppf(0.975, 9)) * 0.1 * math.sqrt(11)
    published = Published(50.0, 0.1)
    assert published.differs_from(50.0 + 1.01 * bound, None, 1)
    assert not published.differs_from(50.0 + 0.99 * bound, None, 1)


def test_a_value_without_an_error_is_held_against_the_spread_of_our_runs():
    bound = float(t.ppf(0.975, 2)) * 0.5 * math.sqrt(1 + 3 / 10)
    assert Published(50.0).differs_from(50.0 + 1.01 * bound, 0.5, 3)
    assert not Published(50.0).differs_from(50.0 + 0.99 * bound, 0.5, 3)


@pytest.mark.parametrize(("published", "error", "n"), [(Published(5.0), None, 1), (Published(5.0), 0.0, 3)])
def test_without_any_spread_nothing_is_said(published, error, n):
    assert not published.differs_from(6.0, error, n)


@pytest.mark.parametrize(("error", "theirs", "n"), [(0.05, 0.2, 3), (0.2, 0.05, 3), (0.1, 0.1, 2), (0.1, 0.1, 10)])
def test_the_bound_is_that_of_welchs_degrees_of_freedom(error, theirs, n):
    def p_value(difference):
        spreads = error * math.sqrt(n), theirs * math.sqrt(10)
        return ttest_ind_from_stats(difference, spreads[0], n, 0.0, spreads[1], 10, equal_var=False).pvalue

    bound = brentq(lambda difference: p_value(difference) - 0.05, 1e-3, 10.0)
    published = Published(50.0, theirs)
    assert published.differs_from(50.0 + 1.002 * bound, error, n)
    assert not published.differs_from(50.0 + 0.998 * bound, error, n)
