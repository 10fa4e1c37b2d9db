"""Concepts told apart by the order of labels."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.mixture import largest_concept
from cndpm.mixture.episodes import _log_evidence


def n_largest(labels, least=50):
    return int(largest_concept(np.asarray(labels), least=least).sum())


def draw(rng, classes, n):
    return rng.choice(classes, size=n)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
@settings(deadline=None, max_examples=50)
def test_the_evidence_is_the_product_of_what_was_expected_of_each_label_before_it_came(labels):
    counts, log_evidence = np.zeros(4), 0.0
    for label in labels:
        log_evidence += math.log((counts[label] + 0.5) / (counts.sum() + 2))
        counts[label] += 1
    assert np.isclose(_log_evidence(counts.astype(np.int64)), log_evidence)


def test_a_task_that_follows_another_is_told_from_it_to_the_sample():
    rng = np.random.default_rng(0)
    assert n_largest([*draw(rng, [0, 1], 287), *draw(rng, [2, 3], 213)]) == 287
    assert n_largest([*draw(rng, [0, 1], 120), *draw(rng, [2, 3], 130), *draw(rng, [4, 5], 250)]) == 250


def test_of_equal_concepts_the_older_one_is_taken():
    rng = np.random.default_rng(0)
    mine = largest_concept(np.array([*draw(rng, [0, 1], 250), *draw(rng, [2, 3], 250)]), least=50)
    assert mine[:250].all() and not mine[250:].any()


def test_labels_without_order_are_one_concept():
    rng = np.random.default_rng(0)
    for n_classes in (2, 10, 50):
        n_cut = sum(n_largest(rng.integers(n_classes, size=500)) < 500 for _ in range(100))
        assert n_cut <= 2


def test_a_concept_that_returns_is_the_same():
    rng = np.random.default_rng(0)
    assert n_largest([*draw(rng, [0, 1], 180), *draw(rng, [2, 3], 140), *draw(rng, [0, 1], 180)]) == 360


def test_shares_that_shift_a_little_make_no_second_concept():
    rng = np.random.default_rng(0)
    assert n_largest([*(rng.random(250) < 0.3), *(rng.random(250) < 0.7)]) == 500


def test_a_few_strays_are_no_concept():
    rng = np.random.default_rng(0)
    assert n_largest([*draw(rng, [0, 1], 470), *draw(rng, [2, 3], 30)]) == 500
