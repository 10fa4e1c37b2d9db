"""Computes metrics of a run from what was measured on the way, its summary, and one result of several seeds.

Notation: ``a[i][t]`` is the accuracy of task t, in percent, at evaluation i. One never measured is ``None``.
Tasks exist only here and in the scenario; the learner is never told of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any

StageTasks = Sequence[Sequence[int]]
"""For every stage of a stream, the tasks it draws from."""


def learned_tasks(stage_tasks: StageTasks, stage: int) -> list[int]:
    """Returns the tasks that appeared in stages 0 to `stage`, in ascending order."""
    return sorted({task for tasks in stage_tasks[: stage + 1] for task in tasks})


def task_end_stages(stage_tasks: StageTasks) -> dict[int, int]:
    """Returns the stage after which each task has ended for the first time.

    A task that lasts over several consecutive stages ends with the last of them; one that comes back later has ended
    before it did.

    Example:
        >>> task_end_stages([(0,), (0, 1), (1,), (0,)])
        {0: 1, 1: 2}
    """
    ends: dict[int, int] = {}
    for stage, tasks in enumerate(stage_tasks):
        following = stage_tasks[stage + 1] if stage + 1 < len(stage_tasks) else ()
        for task in tasks:
            if task not in following:
                ends.setdefault(task, stage)
    return ends


def values_at_task_ends(
    rows: Sequence[Sequence[float | None]], stages: Sequence[int], stage_tasks: StageTasks
) -> dict[int, float]:
    """Returns ``a[i][t]`` at the end of each task's first appearance, from a row of values (n_tasks,) per stage end."""
    row_of: dict[int, Sequence[float | None]] = {}
    for stage, row in zip(stages, rows, strict=True):
        row_of.setdefault(stage, row)
    values = {}
    for task, stage in task_end_stages(stage_tasks).items():
        value = row_of[stage][task] if stage in row_of else None
        if value is not None:
            values[task] = value
    return values


def average_forgetting(rows: Sequence[Sequence[float]], stages: Sequence[int], stage_tasks: StageTasks) -> float | None:
    r"""Averages the drop from best to final accuracy over all tasks but those of the last stage.

    .. math:: F = \frac{1}{|T|} \sum_{t \in T} \max_{i < I} a_{i,t} - a_{I,t}

    where i runs over the stage ends from the first at which t had appeared (Chaudhry et al., 2018); `stages` names the
    stage that ends at each row of accuracies a, (I, T). None for streams with a single stage.
    """
    drops = []
    for task in sorted(set(task_end_stages(stage_tasks)) - set(stage_tasks[-1])):
        seen = [
            row[task]
            for row, stage in zip(rows[:-1], stages[:-1], strict=True)
            if task in learned_tasks(stage_tasks, stage)
        ]
        if seen:
            drops.append(max(seen) - rows[-1][task])
    return mean(drops)


def backward_transfer(rows: Sequence[Sequence[float]], stages: Sequence[int], stage_tasks: StageTasks) -> float | None:
    r"""Measures how learning later tasks changed earlier ones: the mean of :math:`a_{I,t} - a_{\mathrm{end}(t),t}`.

    Tasks that end with the stream are left out (Lopez-Paz and Ranzato, 2017). Negative where there is forgetting.
    """
    last = len(stage_tasks) - 1
    before = values_at_task_ends(rows, stages, stage_tasks)
    ends = task_end_stages(stage_tasks)
    return mean([rows[-1][task] - value for task, value in before.items() if ends[task] < last])


def anytime_accuracy(accuracies: Sequence[float], steps: Sequence[int]) -> float | None:
    """Averages the accuracy over the stream, each evaluation weighted by the number of batches before it."""
    if not steps or steps[-1] == 0:
        return None
    widths = [after - before for before, after in zip([0, *steps], steps, strict=False)]
    return sum(a * width for a, width in zip(accuracies, widths, strict=True)) / steps[-1]


def mean(values: Sequence[float]) -> float | None:
    """Returns the mean; None of an empty sequence."""
    return fmean(values) if values else None


def standard_error(values: Sequence[float]) -> float | None:
    """Returns the standard error of the mean; None where fewer than two values leave it undefined."""
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else None


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
    """Summarises answers given before learning: the one that tables show under a name of its own, and all of them."""
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
