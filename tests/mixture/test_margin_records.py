"""Records of margins and the windows over them, by numbers small enough to check by hand."""

import math

import numpy as np
import pytest
import torch

from cndpm.mixture import accepts_expert
from cndpm.mixture.margin_levels import MarginRecord, clipped, levels, window_means


def test_one_sample_counts_for_at_most_one_deviation_on_either_side():
    assert clipped(np.array([-5.0, -0.3, 0.5, 7.0])).tolist() == [-1.0, -0.3, 0.5, 1.0]


def test_windows_are_centred_inside_a_long_batch():
    values = np.arange(10.0)
    expected = [1.5, 1.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 7.5]
    assert window_means(values, np.full(3, 100.0), window=4).tolist() == expected


def test_a_short_batch_is_pooled_with_the_values_just_before_it():
    assert window_means(np.array([4.0]), np.array([100.0, 1.0, 2.0]), window=3).tolist() == [pytest.approx(7 / 3)]


def test_a_full_record_drops_its_oldest_margins():
    record = MarginRecord(capacity=20, rate=0.01)
    record.add_expert(np.arange(20.0))
    record.push(0, np.array([50.0, 60.0]))
    assert record.values[0].tolist() == [*range(2, 20), 50.0, 60.0]


def test_a_record_is_measured_again_when_one_in_twenty_margins_is_new():
    record = MarginRecord(capacity=100, rate=0.01)
    record.add_expert(np.arange(50.0))
    due = []
    for _ in range(5):
        record.push(0, np.zeros(1))
        due.append(record.is_due)
    assert due == [False, False, False, False, True]


def test_a_level_needs_twenty_margins():
    record = np.full(40, np.nan)
    record[:20] = np.arange(20.0)
    assert math.isfinite(levels(record, 0.01)[0])
    record[0] = np.nan
    assert levels(record, 0.01)[0] == -np.inf


def test_the_tail_below_one_in_twenty_is_exponential():
    """Quantiles of an exponential tail lie where the formula says; the deviation is down to the 16 % quantile."""
    share = (np.arange(2001) + 0.5) / 2001
    level, median, deviation = levels(np.log(share), 0.001)
    assert float(level) == pytest.approx(math.log(0.001), abs=0.05)
    assert float(median) == pytest.approx(math.log(0.5), abs=0.01)
    assert float(deviation) == pytest.approx(math.log(0.5 / 0.16), abs=0.02)


def test_the_tail_of_the_upper_half_counts_where_it_lies_higher():
    record = np.concatenate([np.full(100, -1000.0), np.log((np.arange(900) + 0.5) / 900)])
    half, quarter = np.quantile(record, [0.5, 0.25])
    expected = quarter - (half - quarter) / math.log(2) * math.log(0.25 / 0.01)
    assert float(levels(record, 0.01)[0]) == pytest.approx(expected)


def test_the_row_of_a_removed_expert_is_its_own():
    record = MarginRecord(capacity=20, rate=0.01)
    for first in (0.0, 100.0, 200.0):
        record.add_expert(np.arange(20.0) + first)
    record.remove_expert(1)
    assert record.values[:, 0].tolist() == [0.0, 200.0]
    assert record.levels[1].tolist() == [9.5, 209.5]


@pytest.mark.parametrize("n_experts", [3, 70])
def test_moments_of_all_surprises_are_those_of_clipped_deviations_below_the_medians(n_experts):
    rows = np.random.default_rng(0).normal(size=(n_experts, 30)) * np.arange(1, n_experts + 1)[:, None]
    record = MarginRecord(capacity=30, rate=0.01)
    for row in rows:
        record.add_expert(row)
    _, median, deviation = levels(rows, 0.01)
    surprises = ((median[:, None] - rows) / deviation[:, None]).clip(-1, 1)
    expected = (surprises.size, surprises.mean(), surprises.std(ddof=1))
    assert record.clipped_moments() == pytest.approx(expected)


def test_without_held_out_samples_an_expert_stays():
    nothing = torch.zeros(0, dtype=torch.float64)
    assert accepts_expert(nothing, nothing, cost=5.0)
