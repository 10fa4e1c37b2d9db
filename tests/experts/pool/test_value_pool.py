"""The pool for values: against closed forms, rules that return, intervals, and resuming to the bit."""

import numpy as np
import pytest

from cndpm.experts.pool.latest_rows import LatestRows
from cndpm.experts.pool.value_moments import ValueMoments
from cndpm.experts.pool.value_pool import ValuePool
from cndpm.state import StateError


def noisy_sine(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (n, 1))
    return x, np.sin(2 * x) + noise * rng.normal(size=x.shape)


def rules_in_turn(n=1200, length=300, seed=0):
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(n, 4)), np.array([[1.0, 2.0, -1.0, 0.5], [-2.0, 0.5, 1.0, 1.0]])
    return x, (x * weights[np.arange(n) // length % 2]).sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(n, 1))


def errors_ahead(pool, x, y, batch, when="now"):
    parts = [slice(i, i + batch) for i in range(0, len(x), batch)]
    errors = []
    for part in parts:
        errors.append(y[part] - pool.answer(x[part], when)[:, 0])
        pool.learn(x[part], y[part])
    return np.concatenate(errors)


@pytest.mark.parametrize("batch", [1, 7, 50])
def test_what_forgets_nothing_is_the_ridge_regression_of_all_rows(batch):
    rng = np.random.default_rng(1)
    f, y = rng.normal(size=(151, 6)), rng.normal(size=(151, 2))
    regressions = ValueMoments(6, 2, keeps=(0.9,))
    for i in range(0, 150, batch):  # and one more, so that something is left to refresh
        regressions.learn(y[i : i + batch][: 150 - i], regressions.answer(f[i : i + batch][: 150 - i]), rule=0)
    regressions.learn(y[150:], regressions.answer(f[150:]), rule=0)
    ridge = float(regressions.ridges[1])
    regressions.refresh()
    rows = np.hstack([f, np.ones((151, 1))])
    wide = np.vstack([rows, np.sqrt(np.diag([*[ridge] * 6, 1e-6]))])
    expected = np.linalg.lstsq(wide, np.vstack([y, np.zeros((7, 2))]), rcond=None)[0]
    np.testing.assert_allclose(regressions.answer(f).mean[1], rows @ expected, atol=1e-9)


def test_what_forgets_weighs_rows_by_their_age():
    rng = np.random.default_rng(2)
    f, y = rng.normal(size=(84, 3)), rng.normal(size=(84, 1))
    regressions = ValueMoments(3, 1, keeps=(0.9,))
    for i in range(0, 84, 8):
        regressions.learn(y[i : i + 8], regressions.answer(f[i : i + 8]), rule=0)
    ridge = float(regressions.ridges[0])
    regressions.refresh()
    rows, weights = np.hstack([f, np.ones((84, 1))]), 0.9 ** np.arange(83, -1, -1)
    precision = (rows * weights[:, None]).T @ rows + np.diag([ridge, ridge, ridge, 1e-6])
    expected = np.linalg.solve(precision, (rows * weights[:, None]).T @ y)
    np.testing.assert_allclose(regressions.answer(f).mean[0], rows @ expected, atol=1e-9)


def test_nearest_rows_are_those_of_a_loop():
    rng = np.random.default_rng(3)
    x, y, asked = rng.normal(size=(300, 2)), rng.normal(size=(300, 1)), rng.normal(size=(4, 2))
    rows = LatestRows(2, 1, room=250)
    rows.add(x, y, x)
    at, weights, _ = rows.near(asked)[0]
    for row, mean in zip(asked, (weights * y[50:][at, 0]).sum(axis=1), strict=True):
        distance = np.linalg.norm(x[100:] - row, axis=1)
        nearest = np.argsort(distance)[:5]
        assert mean == pytest.approx(np.average(y[100:][nearest, 0], weights=1 / distance[nearest]), rel=1e-3)


def test_a_rule_that_returns_is_found_within_ten_samples():
    x, y = rules_in_turn()
    pool = ValuePool(4, 1)
    errors = np.abs(errors_ahead(pool, x, y, batch=1))
    assert [what for _, what, _ in pool.events][:3] == ["founded", "returned", "returned"]
    assert 600 < pool.events[1][0] <= 610 and 900 < pool.events[2][0] <= 910
    assert errors[610:900].mean() < 0.12
    assert sum(pool.shares.values()) == pytest.approx(1) and pool.shares["rules"] > 0.9


def test_one_rule_founds_no_other():
    x, y = noisy_sine(800)
    pool = ValuePool(1, 1)
    pool.learn(x, y)
    assert pool.n_rules == 1 and not pool.events


def shares_inside(deviation, n, seeds=8, batch=None):
    """Returns the share (%) of rows inside 90 % intervals in every fifth of x, over seeds."""
    inside, fifths = [], []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 5])
        x = rng.uniform(0, 1, (n + 1000, 1))
        y = np.sin(6 * x) + deviation(x) * rng.normal(size=x.shape)
        pool = ValuePool(1, 1, seed=seed)
        for i in range(0, n, batch or n):
            pool.learn(x[i : i + (batch or n)][: n - i], y[i : i + (batch or n)][: n - i])
        mean, variance = pool.answer(x[n:])[:, :, 0].T
        inside.append(np.abs(y[n:, 0] - mean) < 1.645 * np.sqrt(variance))
        fifths.append(np.minimum(5 * x[n:, 0], 4).astype(int))
    inside, fifths = np.concatenate(inside), np.concatenate(fifths)
    return np.array([100 * inside[fifths == k].mean() for k in range(5)])


NOISE = {"grows": lambda x: 0.1 + x, "same": lambda x: np.full_like(x, 0.3)}


def test_intervals_cover_in_every_fifth_of_x_where_noise_grows():
    shares = shares_inside(NOISE["grows"], 300, seeds=16)
    assert (shares > 85).all() and (shares < 95).all(), shares


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 1000, 2000])
@pytest.mark.parametrize("noise", NOISE)
def test_intervals_cover_in_every_fifth_of_x(noise, n):
    shares = shares_inside(NOISE[noise], n, seeds=16 if n == 300 else 8, batch=25 if n == 1000 else None)
    assert (shares > 85).all() and (shares < 95).all(), shares


@pytest.mark.parametrize("tied", [0.5, 0.9])
def test_errors_that_follow_each_other_found_no_rule(tied):
    rng = np.random.default_rng([0, 6])
    x, level = rng.normal(size=(1000, 3)), np.zeros(1000)
    for i in range(1, 1000):
        level[i] = tied * level[i - 1] + 0.3 * rng.normal()
    pool = ValuePool(3, 1)
    pool.learn(x, (np.sin(x[:, 0]) + x[:, 1] + level)[:, None])
    assert not pool.events


def test_what_errors_tell_of_the_next_row_keeps_its_size_when_units_change():
    """Targets that hardly vary for 90 rows and then fall far are in other units after the hundredth."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(110, 2))
    y = 100 + rng.normal(size=(110, 1)) - 75 * (np.arange(110) >= 94)[:, None]
    pool = ValuePool(2, 1)
    errors_ahead(pool, x[:100], y[:100], 10, "next")
    assert 0 < pool.answer(x[100:101], "next")[0, 0, 0] < 125


@pytest.mark.parametrize("seed", range(2))
def test_intervals_widen_outside_the_rows(seed):
    x, y = noisy_sine(500, seed)
    pool = ValuePool(1, 1)
    pool.learn(x, y)
    mean, variance = pool.answer(np.array([[0.0], [4.0], [6.0]]))[:, :, 0].T
    width = 1.645 * np.sqrt(variance)
    assert abs(mean[1] - np.sin(8.0)) < width[1]
    assert width[0] < 0.3 < 1.0 < width[1] < width[2]


def test_answers_are_in_the_units_of_the_targets():
    x, y = noisy_sine(250)
    plain, other = ValuePool(1, 1), ValuePool(1, 1)
    plain.learn(x, y)
    other.learn(x, 8 * y)
    mean, variance = plain.answer(x[:50])[:, :, 0].T
    np.testing.assert_allclose(other.answer(x[:50])[:, :, 0].T, [8 * mean, 64 * variance], rtol=1e-6)


def test_a_straight_line_is_continued():
    x = np.random.default_rng(0).uniform(-1, 1, (400, 1))
    pool = ValuePool(1, 1)
    pool.learn(x, 3 * x)
    np.testing.assert_allclose(pool.answer(np.array([[3.0]]))[0, 0], 9.0, atol=0.5)


def test_before_members_are_made_it_answers_mean_and_variance_so_far():
    pool = ValuePool(2, 1)
    assert pool.answer(np.zeros((3, 2))).shape == (3, 2, 1)
    y = np.arange(10.0)[:, None]
    pool.learn(np.zeros((10, 2)), y)
    mean, variance = pool.answer(np.zeros((1, 2)))[0, :, 0]
    assert mean == y.mean() and variance == pytest.approx(1.3 * y.var(ddof=1))  # wider, as ten rows are few


@pytest.mark.parametrize("stop", [7, 333])
def test_a_pool_resumes_to_the_bit(stop):
    x, y = rules_in_turn(700)
    whole, first, second = (ValuePool(4, 1, n_rows=400) for _ in range(3))
    errors_ahead(whole, x[:stop], y[:stop], 7)
    errors_ahead(first, x[:stop], y[:stop], 7)
    second.load_state_dict(first.state_dict())
    there, here = (errors_ahead(pool, x[stop:], y[stop:], 7, "next") for pool in (whole, second))
    assert (there == here).all() and whole.events == second.events


def test_a_pool_resumes_to_the_bit_while_a_rule_is_in_doubt():
    x, y = rules_in_turn(420)
    whole, second = ValuePool(4, 1), ValuePool(4, 1)
    errors_ahead(whole, x[:308], y[:308], 7)
    assert whole._rules.in_doubt
    second.load_state_dict(whole.state_dict())
    there, here = (errors_ahead(pool, x[308:], y[308:], 7, "next") for pool in (whole, second))
    assert (there == here).all() and [what for _, what, _ in whole.events] == ["founded"]


def test_answers_change_nothing():
    x, y = rules_in_turn(320)
    asked, silent = ValuePool(4, 1), ValuePool(4, 1)
    for i in range(0, 320, 10):
        asked.answer(x[::-1][:33], "next")
        for pool in (asked, silent):
            pool.learn(x[i : i + 10], y[i : i + 10])
    assert (asked.answer(x) == silent.answer(x)).all()


def test_a_state_of_another_form_changes_nothing():
    x, y = noisy_sine(150)
    pool, other = ValuePool(1, 1), ValuePool(2, 1)
    pool.learn(x, y)
    other.learn(np.hstack([x, x]), y)
    before = pool.answer(x)
    broken = pool.state_dict() | {"events": 3}
    for state in (other.state_dict(), broken, {}, pool.state_dict() | {"n_seen": -1}):
        with pytest.raises(StateError):
            pool.load_state_dict(state)
    assert (pool.answer(x) == before).all()


def test_rows_one_by_one_and_in_tens_have_similar_errors():
    x, y = noisy_sine(400)
    one, ten = (np.abs(errors_ahead(ValuePool(1, 1), x, y, batch)).mean() for batch in (1, 10))
    assert one == pytest.approx(ten, rel=0.15)


def test_errors_that_go_on_help_with_the_next_row_only():
    rng = np.random.default_rng(0)
    x, level = rng.normal(size=(400, 2)), np.zeros((400, 1))
    for i in range(1, 400):
        level[i] = 0.95 * level[i - 1] + 0.3 * rng.normal()
    y = x[:, :1] + level
    now, after = (np.abs(errors_ahead(ValuePool(2, 1), x, y, 1, when))[100:].mean() for when in ("now", "next"))
    assert after < 0.85 * now


def test_what_is_kept_is_bounded():
    x, y = noisy_sine(400)
    pool = ValuePool(1, 1, n_rows=300)
    pool.learn(x, y)
    assert pool.n_seen == 400 and len(pool.rows) == 300
    assert pool.n_numbers_kept > 300


def test_what_is_forgotten_was_as_if_it_had_not_come():
    x, y = noisy_sine(150)
    whole, part = ValuePool(1, 1), ValuePool(1, 1)
    whole.learn(x, y)
    whole.forget(np.arange(150) >= 100)
    part.learn(x[:100], y[:100])
    assert whole.n_seen == 100
    np.testing.assert_array_equal(whole.answer(x), part.answer(x))


def test_of_too_many_rules_the_one_of_fewest_rows_makes_way():
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(900, 3)), np.array([[1.0, 2.0, -1.0], [-2.0, 0.5, 1.0], [0.5, -2.0, -2.0]])
    rule = np.repeat([0, 1, 2, 0], [500, 100, 200, 100])
    pool = ValuePool(3, 1)
    pool.max_rules = 2
    errors_ahead(pool, x, (x * weights[rule]).sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(900, 1)), 10)
    assert [what for _, what, _ in pool.events] == ["founded", "founded", "returned"]
