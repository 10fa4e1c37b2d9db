"""Metrics against values worked out by hand, brute force and invariants."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experiments.metrics import (
    anytime_accuracy,
    average_forgetting,
    backward_transfer,
    learned_tasks,
    mean,
    standard_error,
    task_end_stages,
    values_at_task_ends,
)

SPLIT = [(0,), (1,), (2,)]
ACCURACIES = [[90.0, 0.0, 0.0], [80.0, 95.0, 0.0], [60.0, 97.0, 99.0]]
STAGES = [0, 1, 2]


def test_forgetting_is_the_mean_drop_from_the_best_of_all_but_the_last_task():
    assert average_forgetting(ACCURACIES, STAGES, SPLIT) == pytest.approx(((90 - 60) + (95 - 97)) / 2)


def test_forgetting_counts_from_the_best_and_leaves_out_what_the_last_stage_streams():
    rows = [[50.0, 0.0], [80.0, 95.0], [60.0, 90.0]]
    assert average_forgetting(rows, STAGES, [(0,), (1,), (2,)]) == pytest.approx(((80 - 60) + (95 - 90)) / 2)
    assert average_forgetting(rows, STAGES, [(0,), (1,), (0,)]) == pytest.approx(95 - 90)


def test_backward_transfer_compares_the_end_with_each_tasks_own_end():
    assert backward_transfer(ACCURACIES, STAGES, SPLIT) == pytest.approx(((60 - 90) + (97 - 95)) / 2)


def test_a_single_stage_has_neither_forgetting_nor_transfer():
    assert average_forgetting([[50.0, 60.0]], [0], [(0, 1)]) is None
    assert backward_transfer([[50.0, 60.0]], [0], [(0, 1)]) is None


def test_forgetting_ignores_accuracies_of_a_task_before_it_appeared():
    rows = [[90.0, 50.0, 0.0], [90.0, 40.0, 0.0], [90.0, 40.0, 9.0]]
    assert average_forgetting(rows, STAGES, SPLIT) == pytest.approx(0.0)


def test_a_task_ends_with_the_last_of_its_consecutive_stages():
    assert task_end_stages([(0,), (0, 1), (1,), (1, 2), (2,)]) == {0: 1, 1: 3, 2: 4}


def test_a_task_that_comes_back_has_ended_before():
    assert task_end_stages([(0,), (1,), (0,), (1,)]) == {0: 0, 1: 1}


def test_values_at_task_ends_skip_what_was_not_measured():
    rows = [[88.0, None, None], [70.0, None, None], [60.0, 50.0, 99.0]]
    assert values_at_task_ends(rows, STAGES, SPLIT) == {0: 88.0, 2: 99.0}


def test_learned_tasks_accumulate():
    assert [learned_tasks([(1,), (0, 1), (2,)], stage) for stage in range(3)] == [[1], [0, 1], [0, 1, 2]]


def test_anytime_accuracy_counts_each_evaluation_by_its_batches():
    assert anytime_accuracy([50.0, 100.0], [30, 40]) == pytest.approx((30 * 50 + 10 * 100) / 40)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 50)), min_size=1, max_size=20))
def test_anytime_accuracy_equals_the_brute_force_mean_over_batches(points):
    steps = [sum(width for _, width in points[: i + 1]) for i in range(len(points))]
    per_batch = [accuracy for accuracy, width in points for _ in range(width)]
    assert anytime_accuracy([a for a, _ in points], steps) == pytest.approx(statistics.fmean(per_batch))


@given(st.lists(st.lists(st.floats(0, 100), min_size=3, max_size=3), min_size=3, max_size=3))
def test_forgetting_is_never_less_than_the_loss_since_the_tasks_end(rows):
    forgetting = average_forgetting(rows, STAGES, SPLIT)
    transfer = backward_transfer(rows, STAGES, SPLIT)
    assert forgetting >= -transfer - 1e-9


def test_standard_error_matches_its_formula_and_needs_two_values():
    values = [1.0, 2.0, 4.0, 9.0]
    assert standard_error(values) == pytest.approx(statistics.stdev(values) / math.sqrt(4))
    assert standard_error([3.0]) is None
    assert mean([]) is None
