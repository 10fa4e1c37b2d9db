"""Summarises what a run logged, and combines the summaries of several seeds to one result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cndpm.experiments.metrics import (
    StageTasks,
    anytime_accuracy,
    average_forgetting,
    backward_transfer,
    mean,
    standard_error,
    values_at_task_ends,
)

RESULT_KEYS = ("accuracy", "bits_per_dim", "n_experts", "n_parameters", "n_numbers_kept", "memory_samples", "seconds")
"""Keys that a result has for every learner: the mean over seeds, its standard error, and every seed's value."""

PREQUENTIAL_KEYS = ("prequential_accuracy", "prequential_error", "prequential_bits_per_dim")
"""Keys that a result has beside them where runs answered every batch before they learned it."""


def summarise_run(
    evaluations: Sequence[Mapping[str, Any]], stage_tasks: StageTasks, seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Summarises one complete run."""
    final = evaluations[-1]
    summary = {key: final.get(key) for key in RESULT_KEYS} | dict(seconds)
    summary |= {"memory_bytes": final["memory_bytes"], "n_batches": final["step"]}
    if final.get("task_accuracy") is not None:
        summary |= _accuracies(evaluations, stage_tasks)
    if final.get("task_bits_per_dim") is not None:
        summary["task_bits_per_dim"] = final["task_bits_per_dim"]
    if final.get("gating_accuracy") is not None:
        summary |= _dissected(evaluations, stage_tasks)
    return summary


def summarise_prequential(results: Mapping[str, Any]) -> dict[str, Any]:
    """Summarises answers given before learning: the one that tables show under a name of its own, and all of them.

    Example:
        >>> summarise_prequential({"accuracy": 91.0, "kappa": 0.82})
        {'prequential_accuracy': 91.0, 'prequential': {'accuracy': 91.0, 'kappa': 0.82}}
    """
    names = {"accuracy": "accuracy", "absolute_error": "error", "bits_per_dim": "bits_per_dim"}
    shown = {f"prequential_{short}": results[name] for name, short in names.items() if name in results}
    return shown | {"prequential": dict(results)}


def combine_seeds(scenario: str, learner: str, preset: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the means of :data:`RESULT_KEYS` over seeds (or None), ``standard_error`` of the same, and ``runs``."""
    prequential = [key for key in PREQUENTIAL_KEYS if any(key in run for run in runs)]
    values = {key: over_seeds(runs, key) for key in (*RESULT_KEYS, *prequential)}
    return {
        "scenario": scenario,
        "learner": learner,
        "preset": preset,
        **{key: value for key, (value, _) in values.items()},
        "standard_error": {key: error for key, (_, error) in values.items()},
        "runs": [dict(run) for run in runs],
    }


def over_seeds(runs: Sequence[Mapping[str, Any]], metric: str) -> tuple[float | None, float | None]:
    """Returns the mean of a metric over runs and its standard error; None where no run, or only one, has it."""
    values = [run[metric] for run in runs if run.get(metric) is not None]
    return mean(values), standard_error(values)


def _accuracies(evaluations: Sequence[Mapping[str, Any]], stage_tasks: StageTasks) -> dict[str, Any]:
    ends = [row for row in evaluations if row["stage_end"]]
    rows = [row["task_accuracy"] for row in ends]
    stages = [row["stage"] for row in ends]
    return {
        "task_accuracy": rows[-1],
        "average_task_accuracy": mean(rows[-1]),
        "forgetting": average_forgetting(rows, stages, stage_tasks),
        "backward_transfer": backward_transfer(rows, stages, stage_tasks),
        "anytime_accuracy": anytime_accuracy(
            [row["learned_accuracy"] for row in evaluations], [row["step"] for row in evaluations]
        ),
    }


def _dissected(evaluations: Sequence[Mapping[str, Any]], stage_tasks: StageTasks) -> dict[str, Any]:
    summary = {"gating_accuracy": evaluations[-1]["gating_accuracy"], "expert_tasks": evaluations[-1]["expert_tasks"]}
    ends = [row for row in evaluations if row["stage_end"] and row.get("classifier_accuracy") is not None]
    if ends:
        rows = [row["classifier_accuracy"] for row in ends]
        first = values_at_task_ends(rows, [row["stage"] for row in ends], stage_tasks)
        summary["classifier_accuracy_init"] = mean(list(first.values()))
        summary["classifier_accuracy_final"] = mean([value for value in rows[-1] if value is not None])
    return summary
