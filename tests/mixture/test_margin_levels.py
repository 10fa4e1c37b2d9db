import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.mixture.margin_levels import (
    MarginRecord,
    accepts_expert,
    levels,
    margins,
    novelty_level,
    window_means,
)


def normal(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(100, 5, n)


def test_margin_is_against_the_best_expert():
    log_known = torch.tensor([[1.0, 3.0], [0.0, -4.0]])
    margin, expert = margins(log_known, torch.tensor([1.0, 2.0]))
    assert margin.tolist() == [2.0, -2.0]
    assert expert.tolist() == [1, 0]


@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_the_level_lets_about_the_rate_pass(rate):
    level = novelty_level(normal(4000, 1), rate)
    assert rate / 4 < (normal(20_000, 2) < level).mean() < 1.5 * rate


@given(st.integers(20, 400), st.floats(0.001, 0.4), st.floats(0.01, 100), st.floats(-1e4, 1e4))
def test_the_level_follows_the_unit_and_origin_of_densities(n, rate, scale, origin):
    record = normal(n, n)
    moved = novelty_level(record * scale + origin, rate)
    np.testing.assert_allclose(moved, novelty_level(record, rate) * scale + origin, rtol=1e-6, atol=1e-6 * scale)


@given(st.integers(100, 500), st.floats(0.0, 0.2), st.floats(100.0, 3000.0), st.floats(0.005, 0.049))
def test_errors_do_not_move_the_level_far_however_deep(n, share, depth, rate):
    """Two kinds of margins, right answers and wrong ones: the gap between them is no tail to extrapolate."""
    record = normal(n, n)
    record[: int(share * n)] -= depth
    assert 100 - 12 * 5 < novelty_level(record, rate) < 100


def test_a_short_record_calls_nothing_new():
    assert float(novelty_level(normal(10, 0), 0.01)) == -np.inf


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 100), st.floats(-1e4, 1e4))
def test_median_and_deviation_follow_the_unit_and_origin_of_densities(scale, origin):
    record = normal(100, 3)
    _, median, deviation = levels(record, 0.1)
    np.testing.assert_allclose(median, np.median(record))
    np.testing.assert_allclose(deviation, np.median(record) - np.quantile(record, 0.16))
    _, moved, scaled = levels(record * scale + origin, 0.1)
    np.testing.assert_allclose(moved, median * scale + origin)
    np.testing.assert_allclose(scaled, deviation * scale, rtol=1e-5)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 25), st.integers(0, 15), st.integers(1, 12))
def test_window_means_are_means_of_a_window_that_holds_the_sample(n, n_history, window):
    values = np.arange(n, dtype=np.float64) ** 2
    history = np.arange(n_history, dtype=np.float64)
    joined = np.concatenate([history, values])
    width = min(window, len(joined))
    for i, mean in enumerate(window_means(values, history, window)):
        position = n_history + i
        starts = range(max(0, position - width + 1), min(position, len(joined) - width) + 1)
        assert any(abs(float(joined[s : s + width].mean() - mean)) < 1e-9 for s in starts)


def test_a_candidate_must_gain_more_than_its_cost():
    known = torch.full((10,), -5.0)
    assert accepts_expert(known + 1, known, cost=9.0)
    assert not accepts_expert(known + 1, known, cost=11.0)
    assert not accepts_expert(known - 1, known, cost=0.0)


def test_the_level_of_every_row_is_that_of_the_row_alone():
    rows = np.stack([normal(60, 5), np.concatenate([np.full(25, np.nan), normal(35, 6)]), np.full(60, np.nan)])
    found = novelty_level(rows, 0.1)
    np.testing.assert_allclose(found[:2], [np.nanquantile(row, 0.1) for row in rows[:2]])
    assert found[2] == -np.inf


def test_levels_of_rows_that_changed_are_those_of_a_whole_measurement():
    rng = np.random.default_rng(0)
    record = MarginRecord(capacity=60, rate=0.01)
    for step in range(40):
        values = rng.normal(50, 5, 7)
        if step % 5 == 0:
            record.add_expert(values)
        record.push(step % len(record), values)
        if step == 30:
            record.move(np.arange(len(record), dtype=np.float64))
            record.remove_expert(2)
        record.measure()
        level, median, scale = levels(record.values, 0.01)
        np.testing.assert_array_equal(record.levels, [level, median, scale])
        surprises = np.clip((median[:, None] - record.values) / scale[:, None], -1, 1)
        known = surprises[~np.isnan(surprises)]
        np.testing.assert_allclose(record.clipped_moments(), (len(known), known.mean(), known.std(ddof=1)), rtol=1e-9)
