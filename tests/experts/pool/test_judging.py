"""Weights by kept rows: what is certain only of rows that it has seen is not believed; rare labels count as much."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cndpm.experts.pool import ClassPool
from cndpm.experts.pool.judging import _likeliest, weights_by
from cndpm.experts.pool.kept_rows import N_NEIGHBOUR_MEMBERS
from cndpm.experts.pool.mix import TEMPERATURES, log_normalised, softmax


def weights(pool, balanced):
    rng = np.random.default_rng(0)
    members = pool._maps, pool._moments, pool._clusters, pool._trees
    return weights_by(pool.rows, *members, 0, balanced, rng).reshape(len(TEMPERATURES), -1)


def learned(x, y):
    pool = ClassPool(x.shape[1])
    for start in range(0, len(y), 10):
        pool.learn(x[start : start + 10], y[start : start + 10])
    pool.refresh()
    return pool


def test_neighbours_of_rows_whose_labels_are_chance_are_not_believed():
    rng = np.random.default_rng(0)
    pool = learned(rng.normal(size=(600, 3)), rng.integers(2, size=600))
    sharpest = weights(pool, log_normalised)[0]
    assert sharpest[-N_NEIGHBOUR_MEMBERS:].sum() < 0.05


def test_a_label_of_few_rows_counts_as_much_as_one_of_many():
    y = np.zeros(500, dtype=int)
    y[::60] = 1
    pool = learned(np.random.default_rng(0).normal(size=(500, 3)), y)

    def balanced(told):
        said = np.log(np.full_like(told, 0.5))  # all members but two do not know
        said[0], said[1] = np.log([0.9, 0.1]), np.log([0.1, 0.9])
        return said

    first, second, *_ = weights(pool, balanced).sum(axis=0)
    assert first == pytest.approx(second)


@given(st.integers(2, 6), st.integers(0, 1000))
def test_weights_make_rows_as_likely_as_any_do(n_members, seed):
    rng = np.random.default_rng(seed)
    given, shares = rng.uniform(0.05, 1, (n_members, 30)), rng.uniform(0.5, 2, 30)
    found = _likeliest(given, shares)
    best = minimize(lambda free: -shares @ np.log(softmax(free) @ given), np.zeros(n_members), method="BFGS", tol=1e-10)
    assert found.sum() == pytest.approx(1) and shares @ np.log(found @ given) > -best.fun - 0.05
