"""Evidence against plain loops, the stack's step against numerical derivatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.pool.mix import _CLOCKS, LOWEST, TEMPERATURES, Mix, log_normalised, softmax, tempered

N_MEMBERS, N_LABELS = 3, 4


def said(n, seed=0):
    """Log-probabilities of members, (M, n, C), and labels, (n,)."""
    rng = np.random.default_rng(seed)
    return log_normalised(rng.normal(size=(N_MEMBERS, n, N_LABELS))), rng.integers(N_LABELS, size=n)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(0, 99))
def test_evidence_is_discounted_sample_by_sample(weights, seed):
    logs, y = said(len(weights), seed)
    mix = Mix(N_MEMBERS)
    told, scores, top = mix.ask(logs), mix.scores.copy(), mix.top.copy()
    for i, weight in enumerate(weights):
        keep = 1 - (1 - _CLOCKS) * weight
        scores = keep[:2] * scores + weight * np.log(told.each[:, i, y[i]])
        top = keep[2] * top + weight * np.log(told.candidates[:, i, y[i]])
    mix.learn(told, y, np.array(weights))
    np.testing.assert_allclose(mix.scores, scores, atol=1e-9)
    np.testing.assert_allclose(mix.top, top, atol=1e-9)


@given(st.integers(0, 99), st.integers(1, 5))
def test_batches_give_the_evidence_of_single_samples(seed, n):
    """As long as what is said stays the same, which it does but for the candidates."""
    logs, y = said(n, seed)
    at_once, apart = Mix(N_MEMBERS), Mix(N_MEMBERS)
    at_once.learn(at_once.ask(logs), y, np.ones(n))
    for i in range(n):
        apart.learn(apart.ask(logs[:, i : i + 1]), y[i : i + 1], np.ones(1))
    np.testing.assert_allclose(at_once.scores, apart.scores)


def test_samples_without_weight_change_nothing():
    logs, y = said(20)
    mix = Mix(N_MEMBERS)
    mix.learn(mix.ask(logs), y, np.ones(20))
    before = [getattr(mix, name).copy() for name in mix.kept]
    mix.learn(mix.ask(logs), y, np.zeros(20))
    for name, value in zip(mix.kept, before, strict=True):
        np.testing.assert_array_equal(getattr(mix, name), value)


def log_loss(exponents, logs, y, weights):
    """Minus the weighted log-probability of the labels by the stack."""
    return -weights @ log_normalised(np.tensordot(exponents, logs, 1))[np.arange(len(y)), y]


def test_the_stack_takes_one_of_newtons_steps_on_the_log_loss():
    logs, y = said(30)
    weights, mix, h = np.random.default_rng(1).uniform(size=30), Mix(N_MEMBERS), 1e-4
    told = mix.ask(logs)
    logs, start = np.concatenate([logs, np.log(told.candidates[:2])]), mix.exponents.copy()  # members and mixtures
    units = h * np.eye(len(start))

    def loss(*steps):
        return log_loss(start + sum(steps), logs, y, weights)

    gradient = np.array([(loss(u) - loss(-u)) / (2 * h) for u in units])

    def bent(u, v):
        return (loss(u, v) - loss(u, -v) - loss(-u, v) + loss(-u, -v)) / (4 * h * h)

    second = np.array([[bent(u, v) for v in units] for u in units])
    mix.learn(told, y, weights)
    curvature = second + 20.0 * np.eye(len(start))  # what fades of the ridge is put back
    np.testing.assert_allclose(mix.curvature, curvature, atol=0.05)  # but for the floor beneath the stack's answer
    damped = curvature + 2 * 20.0 * np.eye(len(start))  # thirty rows meet the ridge of three tens
    np.testing.assert_allclose(mix.exponents - start, -np.linalg.solve(damped, gradient), atol=0.005)


def test_the_stack_begins_as_the_mixtures_geometric_mean():
    logs, _ = said(8)
    told = Mix(N_MEMBERS).ask(logs)
    expected = np.sqrt(told.candidates[0] * told.candidates[1])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(told.candidates[2], expected + 1e-3 / N_LABELS)


def test_the_stack_answers_as_the_exponents_that_are_best():
    rng = np.random.default_rng(0)
    logs, _ = said(3000, seed=4)
    best = np.array([1.2, 0.0, 0.5])
    y = np.array([rng.choice(N_LABELS, p=p) for p in softmax(np.tensordot(best, logs, 1))])
    mix = Mix(N_MEMBERS)
    for i in range(0, 3000, 10):
        mix.learn(mix.ask(logs[:, i : i + 10]), y[i : i + 10], np.ones(10))
    expected = softmax(np.tensordot(best, logs, 1))
    assert np.abs(mix.ask(logs).candidates[2] - expected).mean() < 0.02
    assert np.abs(Mix(N_MEMBERS).ask(logs).candidates[2] - expected).mean() > 0.05


def test_the_member_that_is_right_answers_and_the_latest_evidence_counts_more():
    mix = Mix(2)
    right, wrong = np.log([[[0.9, 0.1]]]), np.log([[[0.1, 0.9]]])
    for logs, n in (([right, wrong], 60), ([wrong, right], 120)):
        told = np.concatenate(logs)
        for _ in range(n):
            mix.learn(mix.ask(told), np.array([0]), np.ones(1))
        assert np.exp(mix.answer(mix.ask(told).candidates))[0, 0] > 0.8


def test_kept_rows_take_the_place_of_the_streams_evidence():
    logs, _ = said(6)
    mix, each = Mix(N_MEMBERS), tempered(logs)
    weights = np.eye(len(each))[2]  # at the first temperature
    told = mix.ask(logs, weights, 1.0)
    np.testing.assert_allclose(told.candidates[0], each[2])
    answer = mix.answer(told.candidates, by_kept_rows=True)
    np.testing.assert_allclose(answer, np.log(each[2]))  # the stack was not judged by them
    np.testing.assert_array_equal(mix.ask(logs, weights, 0.0).candidates, mix.ask(logs).candidates)
    half = 0.5 * each[2] + 0.5 * mix.ask(logs).candidates[0]
    np.testing.assert_allclose(mix.ask(logs, weights, 0.5).candidates[0], half)


def test_members_that_say_nothing_leave_their_weight_to_the_others():
    logs, _ = said(6)
    mix, each = Mix(N_MEMBERS), tempered(logs)
    is_silent = np.arange(N_MEMBERS) != 1
    weights = np.where(np.arange(len(each)) == 2, 1.0, 1e-30)
    own = each[1::N_MEMBERS]
    np.testing.assert_allclose(mix.ask(logs, weights, 1.0, is_silent=is_silent).candidates[0], own.mean(axis=0))
    np.testing.assert_allclose(mix.ask(logs, is_silent=is_silent).candidates[0], own.mean(axis=0))


def test_answers_at_a_temperature_are_powers_with_a_floor_beneath():
    logs, _ = said(5)
    told = tempered(logs).reshape(len(TEMPERATURES), N_MEMBERS, 5, N_LABELS)
    for temperature, each in zip(TEMPERATURES, told, strict=True):
        powers = np.exp(logs) ** temperature
        np.testing.assert_allclose(each, powers / powers.sum(axis=2, keepdims=True) + 1e-3 / N_LABELS)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6))
def test_log_probabilities_are_normalised_and_none_is_below_the_lowest(values):
    logs = log_normalised(np.array([values]))
    assert logs.min() >= LOWEST
    assert np.exp(logs).sum() == pytest.approx(1, abs=len(values) * np.exp(LOWEST))
    np.testing.assert_allclose(softmax(np.array([values])), np.exp(logs), atol=np.exp(LOWEST))


def test_state_resumes_to_the_bit():
    logs, y = said(40)
    mix, resumed = Mix(N_MEMBERS), Mix(N_MEMBERS)
    mix.learn(mix.ask(logs), y, np.ones(40))
    resumed.load_state_dict(mix.state_dict())
    for one in (mix, resumed):
        one.learn(one.ask(logs), y, np.ones(40))
    np.testing.assert_array_equal(mix.ask(logs).candidates, resumed.ask(logs).candidates)


def test_members_that_are_silent_leave_their_weight_to_the_others():
    logs, _ = said(50)
    mix = Mix(N_MEMBERS)
    mix.scores[:] = -1000.0
    mix.scores.reshape(2, -1, N_MEMBERS)[..., 1] = 0.0  # has all the weight, and nothing to say
    logs[1] = -np.log(logs.shape[2])
    is_silent = np.arange(N_MEMBERS) == 1
    told = mix.ask(logs, is_silent=is_silent)
    others = told.each.reshape(len(TEMPERATURES), N_MEMBERS, *logs.shape[1:])[:, ~is_silent].mean(axis=(0, 1))
    np.testing.assert_allclose(told.candidates[:2], np.stack([others] * 2))
