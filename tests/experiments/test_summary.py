"""Summaries of runs and of seeds, against values worked out by hand."""

import pytest

from cndpm.experiments.metrics import RESULT_KEYS, combine_seeds, over_seeds, summarise_run

TIMES = {"seconds": 2.0, "overhead_seconds": 1.0}
STAGE_TASKS = [(0,), (1,)]


def evaluation(step, stage, *, stage_end, tasks, **values):
    footprint = {"n_experts": 2, "n_parameters": 10, "n_numbers_kept": 12, "memory_samples": 5, "memory_bytes": 40}
    learned = sum(tasks[: stage + 1]) / (stage + 1)
    return {
        "step": step,
        "stage": stage,
        "stage_end": stage_end,
        "task_accuracy": tasks,
        "accuracy": sum(tasks) / 2,
        "learned_accuracy": learned,
        **footprint,
        **values,
    }


ROWS = [
    evaluation(5, 0, stage_end=False, tasks=[60.0, 0.0]),
    evaluation(10, 0, stage_end=True, tasks=[90.0, 0.0], classifier_accuracy=[95.0, None], gating_accuracy=100.0),
    evaluation(
        20,
        1,
        stage_end=True,
        tasks=[70.0, 80.0],
        classifier_accuracy=[94.0, 99.0],
        gating_accuracy=75.0,
        expert_tasks=[0, 1],
    ),
]


def test_a_run_is_summarised_by_its_last_evaluation_and_its_way_there():
    summary = summarise_run(ROWS, STAGE_TASKS, TIMES)
    assert summary["accuracy"] == 75.0
    assert summary["average_task_accuracy"] == 75.0
    assert summary["forgetting"] == 20.0
    assert summary["backward_transfer"] == -20.0
    assert summary["anytime_accuracy"] == pytest.approx((5 * 60 + 5 * 90 + 10 * 75) / 20)
    assert (summary["seconds"], summary["overhead_seconds"], summary["n_batches"]) == (2.0, 1.0, 20)


def test_a_mixture_is_summarised_as_in_the_papers_dissection():
    summary = summarise_run(ROWS, STAGE_TASKS, TIMES)
    assert summary["classifier_accuracy_init"] == pytest.approx((95 + 99) / 2)
    assert summary["classifier_accuracy_final"] == pytest.approx((94 + 99) / 2)
    assert summary["gating_accuracy"] == 75.0


def test_seeds_are_combined_to_means_and_standard_errors():
    runs = [dict.fromkeys(RESULT_KEYS, value) | {"bits_per_dim": None, "seed": i} for i, value in enumerate([1.0, 3.0])]
    result = combine_seeds("s", "l", "p", runs)
    assert result["accuracy"] == 2.0
    assert result["standard_error"]["accuracy"] == pytest.approx(1.0)
    assert result["bits_per_dim"] is result["standard_error"]["bits_per_dim"] is None
    assert [run["seed"] for run in result["runs"]] == [0, 1]


def test_a_single_seed_has_no_standard_error():
    assert over_seeds([{"accuracy": 5.0}], "accuracy") == (5.0, None)
    assert over_seeds([{}], "accuracy") == (None, None)
