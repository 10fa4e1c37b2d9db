"""Labels that were exchanged are told from the latest samples."""

import numpy as np

from cndpm.mixture.relabelling import count_labels, relabel


def test_counts_are_faded_sums_however_samples_come_in_batches():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), size=40), rng.integers(3, size=40)
    together = count_labels(np.zeros((2, 2)), proba, y, keep=0.9)
    expected = sum(0.9 ** (39 - i) * np.outer(proba[i], np.eye(3)[y[i]]) for i in range(40))
    np.testing.assert_allclose(together, expected)
    one_by_one = np.zeros((0, 0))
    for i in range(40):
        one_by_one = count_labels(one_by_one, proba[i : i + 1], y[i : i + 1], keep=0.9)
    np.testing.assert_allclose(one_by_one, expected)


def test_labels_are_followed_around_a_circle():
    proba, y = np.eye(3)[[0, 1, 2] * 10], np.array([1, 2, 0] * 10)
    counts = count_labels(np.zeros((0, 0)), proba, y, keep=0.95)
    now = relabel(np.eye(3), counts)
    assert now.argmax(axis=1).tolist() == [1, 2, 0]
    np.testing.assert_allclose(now.sum(axis=1), 1)


def test_without_samples_labels_are_what_they_were():
    proba = np.array([[0.7, 0.2, 0.1]])
    assert (relabel(proba, np.zeros((0, 0))).argsort() == proba.argsort()).all()
