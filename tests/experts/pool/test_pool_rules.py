"""Which rule holds against plain loops over samples."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.pool.rules import KNOWN, Rules
from cndpm.state import StateError


def several(n_rules, n_labels=2, most=8):
    rules = Rules(evidence=20.0, most=most, n_labels=n_labels, events=[])
    for i in range(1, n_rules):
        rules.found(sample=i)
    return rules


def plain_filter(log_scores, switch=0.005, floor=6.0, start=None):
    """Probabilities of the rules after every sample, by a loop."""
    p = np.full(len(log_scores), 1 / len(log_scores)) if start is None else start
    shown = []
    for one in log_scores.T:
        p = (1 - switch) * p + switch / len(p)
        p = p * np.exp(np.maximum(one, one.max() - floor))
        p = p / p.sum()
        shown.append(p)
    return np.array(shown)


@given(st.integers(2, 5), st.integers(1, 20), st.integers(0, 99))
def test_the_filter_is_a_sticky_one_sample_by_sample(n_rules, n, seed):
    rules = several(n_rules)
    scores = np.random.default_rng(seed).normal(size=(n_rules, n)) * 5
    start = rules.weights
    rules.follow(scores, sample=n)
    expected = plain_filter(scores, start=start)[-1]
    np.testing.assert_allclose(rules.weights, expected, atol=1e-9)
    assert expected[rules.holds] == pytest.approx(expected.max())


@given(st.integers(2, 8), st.integers(0, 99))
def test_a_rule_that_returns_is_found_within_ten_samples(n_rules, seed):
    rules, rng = several(n_rules), np.random.default_rng(seed)
    back = int(rng.integers(n_rules - 1))
    for right, n in ((n_rules - 1, 500), (back, 10)):
        for i in range(n):
            scores = np.log(np.full((n_rules, 1), 0.2))
            scores[right] = np.log(0.8)
            rules.follow(scores, sample=i)
    assert rules.holds == back and rules.events[-1][1:] == ("returned", back)


def test_one_surprise_does_not_change_the_rule():
    rules = several(2)
    for _ in range(100):
        rules.follow(np.log([[0.2], [0.8]]), sample=0)
    rules.follow(np.array([[0.0], [-1000.0]]), sample=1)  # cut off at six nats
    rules.follow(np.log([[0.2], [0.8]]), sample=2)
    assert rules.holds == 1


def test_a_single_rule_needs_no_filter():
    rules = several(1)
    rules.follow(np.array([[-5.0]]), sample=1)
    assert rules.filter.tolist() == [0.0] and rules.events == []


@given(st.lists(st.tuples(st.floats(-10, 15), st.integers(1, 10)), max_size=25))
def test_a_challenge_is_a_sum_that_begins_anew_at_zero(steps):
    rules, lead, since = several(1), 0.0, 0
    for gain, n in steps:
        lead = max(0.0, lead + gain - 0.05 * n)
        since = since + n if lead > 2.0 else 0
        assert rules.challenge(gain, n) == (lead > 20.0 and since >= 20)
        assert rules.lead == pytest.approx(lead) and rules.n_since == since
        assert rules.is_waiting == (rules.lead > 2.0)


def test_calibration_alone_founds_nothing():
    rules = several(1)
    assert not any(rules.challenge(0.05 * 10, 10) for _ in range(1000))
    assert any(rules.challenge(0.2 * 10, 10) for _ in range(20))


def test_a_rule_that_is_founded_holds_and_knows_the_labels_of_the_one_before():
    rules = Rules(evidence=20.0, most=8, n_labels=2, events=[])
    rules.count(np.array([0] * KNOWN + [1]))
    rules.challenge(30.0, 25)
    assert rules.found(sample=7) is None
    assert (rules.holds, rules.lead, rules.n_since, len(rules)) == (1, 0.0, 0, 2)
    assert rules.knows(np.array([0, 1])).tolist() == [True, False]
    assert rules.weights.tolist() == [0.5, 0.5] and rules.events == [(7, "founded", 1)]
    rules.count(np.array([1] * KNOWN))
    assert rules.seen.tolist() == [[KNOWN, 1], [KNOWN, KNOWN + 1]]
    assert rules.held.tolist() == [KNOWN + 1, KNOWN]


def test_the_oldest_makes_way_and_the_one_that_holds_keeps_its_name():
    rules = several(3, most=3)
    rules.count(np.array([1]))
    assert rules.found(sample=4) == 0
    rules.drop(0)
    assert len(rules) == 3 and rules.holds == 2 and rules.seen[2].tolist() == [0, 1]
    rules.holds = 0
    rules.drop(2)
    assert rules.holds == 0


@given(st.permutations(range(3)))
def test_relabelling_permutes_what_was_seen(places):
    rules = several(2)
    rules.count(np.array([0, 1, 1]))
    rules.relabel(np.array(places))
    assert [rules.seen[1, places[label]] for label in range(3)] == [1, 2, 0]


def test_the_latest_thousand_events_are_kept():
    rules = several(2)
    for i in range(1200):
        rules.follow(np.array([[0.0], [-40.0]] if i % 2 else [[-40.0], [0.0]]) * (1 + i), sample=i)
        rules.holds = i % 2
        rules._note(i, "returned")
    assert len(rules.events) == 1000 and rules.events[-1] == (1199, "returned", 1)


def test_state_resumes_to_the_bit():
    rules, resumed = several(3), Rules(evidence=20.0, most=8, n_labels=2, events=[])
    scores = np.random.default_rng(0).normal(size=(3, 40))
    rules.challenge(3.0, 9)
    resumed.load_state_dict(rules.state_dict())
    for one in (rules, resumed):
        one.follow(scores, sample=9)
        one.challenge(1.0, 3)
    assert resumed.events == rules.events and resumed.lead == rules.lead and resumed.holds == rules.holds
    np.testing.assert_array_equal(rules.weights, resumed.weights)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("holds", 3),
        ("holds", -1),
        ("lead", -1.0),
        ("filter", torch.zeros(2, dtype=torch.float64)),
        ("filter", None),
        ("events", None),
        ("events", [3]),
        ("events", [[1, "ended", 0]]),
        ("events", [[1, "founded", 0.5]]),
        ("events", [[1, "founded"]]),
    ],
)
def test_a_wrong_state_is_refused(name, value):
    state = {**several(3).state_dict(), name: value}
    with pytest.raises(StateError):
        several(1).load_state_dict(state)


@pytest.mark.parametrize("name", ["filter", "seen", "holds", "events"])
def test_a_state_that_lacks_something_is_refused(name):
    state = several(3).state_dict()
    del state[name]
    with pytest.raises(StateError, match=name):
        several(1).load_state_dict(state)


def test_rules_that_return_four_times_within_a_hundred_samples_are_parts_of_one():
    rules = several(2)
    for sample in (100, 130, 160, 199):
        assert not rules.are_parts
        rules.events.append((sample, "returned", 0))
    assert rules.are_parts
    rules.events[-1] = (200, "returned", 0)
    assert not rules.are_parts  # times, not parts
    rules.events[-1] = (199, "founded", 2)
    assert not rules.are_parts  # the latest has not been met again


def test_one_rule_has_no_parts():
    rules = several(1)
    rules.events = [(sample, "returned", 0) for sample in range(4)]  # of those before rows were learned anew
    assert not rules.are_parts
