"""Evidence of kept rows: what is certain only of rows that it has seen is not believed; rare labels count as much."""

import numpy as np

from cndpm.experts.pool import ClassPool
from cndpm.experts.pool.judging import evidence_of
from cndpm.experts.pool.kept_rows import N_NEIGHBOUR_MEMBERS
from cndpm.experts.pool.mix import TEMPERATURES, log_normalised


def evidence(pool, balanced):
    rng = np.random.default_rng(0)
    members = pool._maps, pool._moments, pool._clusters, pool._trees
    return evidence_of(pool.rows, *members, 0, balanced, rng).reshape(len(TEMPERATURES), -1)


def learned(x, y):
    pool = ClassPool(x.shape[1])
    for start in range(0, len(y), 10):
        pool.learn(x[start : start + 10], y[start : start + 10])
    pool.refresh()
    return pool


def test_neighbours_of_rows_whose_labels_are_chance_are_not_believed():
    rng = np.random.default_rng(0)
    pool = learned(rng.normal(size=(600, 3)), rng.integers(2, size=600))
    sharpest = evidence(pool, log_normalised)[0]
    assert sharpest[-N_NEIGHBOUR_MEMBERS:].max() < sharpest[:-N_NEIGHBOUR_MEMBERS].max() - 1


def test_a_label_of_few_rows_counts_as_much_as_one_of_many():
    y = np.zeros(500, dtype=int)
    y[::60] = 1
    pool = learned(np.random.default_rng(0).normal(size=(500, 3)), y)

    def balanced(told):
        said = np.log(np.full_like(told, 0.5))  # all members but the first do not know
        said[0] = np.log([0.9, 0.1])
        return said

    first, *others = evidence(pool, balanced)[0]
    assert first < 0 and others == [0.0] * len(others)
