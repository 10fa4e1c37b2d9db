"""Rows that models learn together: what waits, what does not, and that waiting loses nothing."""

import numpy as np
import pytest

from cndpm.experts.pool import mix
from cndpm.experts.pool.class_pool import ClassPool
from cndpm.experts.pool.mix import TOGETHER, Backlog


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, (x[:, 0] > 0).astype(int)


def taught(n=300):
    """A pool that foresees what comes."""
    pool, (x, y) = ClassPool(3), rows(n)
    for start in range(0, n, 10):
        pool.learn(x[start : start + 10], y[start : start + 10])
    return pool


def test_models_learn_ten_foreseen_rows_together_and_neighbours_each_at_once():
    pool, x = taught(), np.array([[3.0, 0.0, 0.0]])
    n = pool.counts.sum()
    for i in range(1, TOGETHER):
        pool.learn(x + 0.01 * i, np.array([1]))
        assert pool.counts.sum() == n
        assert len(pool.rows) == n + i
    pool.learn(x, np.array([1]))
    assert pool.counts.sum() == n + TOGETHER


def test_rows_that_contradict_their_answers_are_learned_at_once():
    pool, x = taught(), np.array([[3.0, 0.0, 0.0]])
    n = pool.counts.sum()
    pool.learn(x, np.array([1]))
    pool.learn(x, np.array([0]))
    assert pool.counts.sum() == n + 2


@pytest.mark.parametrize("surprise", [0.5, np.inf])
def test_a_label_that_is_new_does_not_wait_however_little_it_surprises(surprise, monkeypatch):
    monkeypatch.setattr(mix, "_SURPRISE", surprise)
    pool = taught()
    pool.learn(np.array([[0.0, 9.0, 0.0]]), np.array([2]))
    assert pool.counts[2] == 1


def test_surprise_is_counted_beyond_what_the_answer_expects():
    even, sure = np.log([[0.5, 0.5]]), np.log([[0.9, 0.1]])
    backlog = Backlog()
    backlog.compare(even, np.array([0]))
    assert backlog.surprise == pytest.approx(0)
    backlog.compare(sure, np.array([1]))
    entropy = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert backlog.surprise == pytest.approx(-np.log(0.1) - entropy)


def test_rows_that_wait_are_learned_as_one_batch_with_what_was_said_when_they_came():
    """Two at a time, or nine of ten resumed from a file: the same to the bit."""
    x, y = np.tile([[2.0, 0.5, -0.5]], (10, 1)) + 0.01 * np.arange(10)[:, None], np.ones(10, int)
    whole, resumed = taught(), taught()
    for start in range(0, 10, 2):
        whole.learn(x[start : start + 2], y[start : start + 2])
    for start in range(0, 8, 2):
        resumed.learn(x[start : start + 2], y[start : start + 2])
    assert len(resumed._backlog) == 8
    other = ClassPool(3)
    other.load_state_dict(resumed.state_dict())
    other.learn(x[8:], y[8:])
    asked = rows(50, seed=5)[0]
    for when in ("now", "next", "any"):
        np.testing.assert_array_equal(whole.answer(asked, when), other.answer(asked, when))


def test_what_waits_is_learned_when_the_pool_is_refreshed():
    pool = taught()
    n = pool.counts.sum()
    pool.learn(np.array([[3.0, 0.0, 0.0]]), np.array([1]))
    assert pool.counts.sum() == n
    pool.refresh()
    assert pool.counts.sum() == n + 1


def test_evidence_is_of_what_was_said_before_a_row_was_its_own_neighbour(monkeypatch):
    pool, x = taught(), np.array([[2.0, 0.5, -0.5]])
    weighed, told = [], pool._told
    monkeypatch.setattr(pool, "_told", lambda *said: weighed.append(said[2]) or told(*said))
    said = []
    for i in range(TOGETHER):
        row = x + 0.01 * i
        said.append(pool._ask(row).likely)
        pool.learn(row, np.array([1]))
    assert weighed[-1].shape[1] == TOGETHER
    np.testing.assert_array_equal(weighed[-1], np.concatenate(said, axis=1))
