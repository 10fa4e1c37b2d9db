"""Rows whose rule changes: what changes, where, and what does not."""

import numpy as np
import pytest

from cndpm.streams.rows import flipped_rule, flipped_sign, rotated_rule, rules_in_turn, tripling_scales, turning_rule

RULES = [flipped_rule, rotated_rule, rules_in_turn, turning_rule, tripling_scales, flipped_sign]


def linear_fit(x, y):
    """The direction of the least-squares rule, (d,), of length one."""
    w = np.linalg.lstsq(np.c_[x, np.ones(len(x))], y, rcond=None)[0][:-1]
    return w / np.linalg.norm(w)


@pytest.mark.parametrize("draw", RULES)
def test_a_seed_gives_the_same_rows_and_another_one_others(draw):
    first, again, other = draw(3), draw(3), draw(4)
    assert np.array_equal(first.x, again.x) and np.array_equal(first.y, again.y)
    assert not np.array_equal(first.x, other.x) and first.x.shape == other.x.shape and first.changes == other.changes


def test_a_flipped_rule_gives_every_row_the_other_class():
    rows = flipped_rule(0)
    before, after = slice(None, 3000), slice(3000, None)
    assert linear_fit(rows.x[before], rows.y[before]) @ linear_fit(rows.x[after], rows.y[after]) < -0.99


def test_a_rotated_rule_stands_at_right_angles_to_the_old_one_on_the_same_rows():
    rows, flipped = rotated_rule(0), flipped_rule(0)
    assert np.array_equal(rows.x, flipped.x) and np.array_equal(rows.y[:3000], flipped.y[:3000])
    cosine = linear_fit(rows.x[:3000], rows.y[:3000]) @ linear_fit(rows.x[3000:], rows.y[3000:])
    assert abs(cosine) < 0.06


def test_of_two_rules_in_turn_the_first_returns():
    rows = rules_in_turn(0)
    parts = [linear_fit(rows.x[i : i + 2000], rows.y[i : i + 2000]) for i in range(0, 8000, 2000)]
    assert rows.changes == (2000, 4000, 6000)
    assert parts[0] @ parts[2] > 0.99 and parts[1] @ parts[3] > 0.99 and abs(parts[0] @ parts[1]) < 0.08


def test_a_turning_rule_ends_where_the_smallest_score_was_the_largest():
    rows = turning_rule(0)
    fits = [linear_fit(rows.x[part], (rows.y[part] == 0).astype(float)) for part in (slice(0, 600), slice(5400, None))]
    assert fits[0] @ fits[1] < -0.5 and rows.changes == () and set(rows.y) == {0, 1, 2}


def test_scales_triple_and_rules_differ():
    rows = tripling_scales(0)
    scales = [rows.x[i : i + 1000].std() for i in range(0, 5000, 1000)]
    assert np.allclose(np.diff(np.log(scales)), np.log(3), atol=0.05)
    fits = np.stack([linear_fit(rows.x[i : i + 1000], rows.y[i : i + 1000]) for i in range(0, 5000, 1000)])
    assert np.abs(fits @ fits.T - np.eye(5)).max() < 0.95


def test_the_sign_of_the_target_is_reversed_and_its_noise_is_a_tenth():
    rows = flipped_sign(0)
    w = [np.linalg.lstsq(rows.x[part], rows.y[part], rcond=None)[0] for part in (slice(3000), slice(3000, None))]
    assert np.allclose(w[0], -w[1], atol=0.02) and np.linalg.norm(w[0]) == pytest.approx(np.sqrt(5), abs=0.02)
    assert (rows.y[:3000] - rows.x[:3000] @ w[0]).std() == pytest.approx(0.1, abs=0.01)
