"""The sticky filter against the forward algorithm, discounted evidence and the challenge against loops."""

import itertools

import numpy as np
import pytest

from cndpm.mixture.time import Challenge, advance_filter, challenge, discount, log_normalise


@pytest.fixture
def scores():
    return np.random.default_rng(0).normal(size=(5, 3)) * 2


@pytest.mark.parametrize("switch", [0.0, 0.01, 0.3, 1.0])
def test_the_filter_is_the_sum_over_all_paths(scores, switch):
    start = np.log([0.2, 0.5, 0.3])
    joint = np.zeros(3)
    for path in itertools.product(range(3), repeat=6):  # a state before the first sample, and one at each
        probability = np.exp(start[path[0]])
        for now, (before, after) in enumerate(itertools.pairwise(path)):
            moves = (1 - switch) * (before == after) + switch / 3
            probability *= moves * np.exp(scores[now, after])
        joint[path[-1]] += probability
    log_weights, evidence = advance_filter(start[None], scores, np.array([switch]))
    np.testing.assert_allclose(np.exp(log_weights[0]), joint / joint.sum())
    np.testing.assert_allclose(np.exp(evidence[0]), joint.sum())


def test_filters_of_several_stickinesses_do_not_touch_each_other(scores):
    start = np.log(np.full((2, 3), 1 / 3))
    together = advance_filter(start, scores, np.array([0.01, 0.2]))
    for a, switch in enumerate((0.01, 0.2)):
        alone = advance_filter(start[:1], scores, np.array([switch]))
        np.testing.assert_allclose(together[0][a], alone[0][0])
        np.testing.assert_allclose(together[1][a], alone[1][0])


def test_a_rule_that_returns_is_back_within_a_few_samples_however_long_it_was_away():
    away, back = np.array([[-0.1, -3.0]]).repeat(10_000, axis=0), np.array([[-3.0, -0.1]]).repeat(4, axis=0)
    weights, _ = advance_filter(np.log([[0.5, 0.5]]), away, np.array([0.01]))
    weights, _ = advance_filter(weights, back, np.array([0.01]))
    assert np.exp(weights[0, 1]) > 0.95


def test_impossible_hypotheses_leave_finite_weights():
    weights, evidence = advance_filter(np.log([[0.5, 0.5]]), np.array([[-2000.0, -1.0]]), np.array([0.0]))
    assert np.isfinite(weights).all() and np.isfinite(evidence).all()


def test_evidence_fades_as_if_samples_came_one_by_one(scores):
    evidence = np.array([1.0, -2.0, 0.5])
    expected = evidence
    for score in scores:
        expected = 0.9 * expected + score
    np.testing.assert_allclose(discount(evidence, scores, 0.9), expected)


def test_a_challenge_forgets_what_was_before_its_challenger_led():
    gains = np.array([-5.0, 1.0, 1.0, -0.5, 2.0])
    assert challenge(Challenge(), gains) == Challenge(nats=3.5, since=4)
    assert challenge(Challenge(), np.append(gains, -9.0)) == Challenge()


def test_a_challenge_is_the_same_in_parts():
    gains = np.random.default_rng(1).normal(size=40)
    state = Challenge()
    for part in np.split(gains, 8):
        state = challenge(state, part)
    assert state == challenge(Challenge(), gains)


def test_log_weights_sum_to_one_along_an_axis():
    np.testing.assert_allclose(np.exp(log_normalise(np.array([[1000.0, 1001.0], [3.0, 3.0]]))).sum(axis=1), 1)
