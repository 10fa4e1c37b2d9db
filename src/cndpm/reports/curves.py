"""Curves over the stream: metrics, one colour per group, every seed faint, their mean bold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from cndpm.reports.figures import Band, ChartPanel, Line, LineChart, Values
from cndpm.reports.groups import Group
from cndpm.reports.run import Run

X_LABEL = "batches learned"
"""The label of every axis that runs along the stream."""

_GROWTH = {
    "n_experts": ("Experts over the stream", "number of experts"),
    "n_parameters": ("Parameters over the stream", "trained parameters"),
}

Curve = tuple[list[int], Values]
Reader = Callable[[Run], Curve]


def metric_chart(groups: Sequence[Group]) -> LineChart | None:
    """Shows accuracy, or bits per dimension, on the test data of all tasks; None before the first evaluation."""
    metric = groups[0].runs[0].metric
    lines = group_lines(groups, lambda run: values_of(run.record.evaluations, metric))
    if not lines:
        return None
    name, label = {
        "accuracy": ("Accuracy", "accuracy on all tasks (%)"),
        "bits_per_dim": ("Bits per dimension", "bits per dimension (less is better)"),
    }[metric]
    return one_panel(
        groups,
        lines,
        key="accuracy",
        title=f"{name} over the stream",
        caption="Measured on the test data of all tasks, including those that have not been streamed yet. "
        + faint_words(lines)
        + "Shading marks the stages of the stream, which learners are not told.",
        alt=f"{name} against batches learned. {line_ends(lines)}",
        y_label=label,
        y_range=(0, 100) if metric == "accuracy" else None,
    )


def one_panel(groups: Sequence[Group], lines: Sequence[Line], **words: Any) -> LineChart:
    """Makes a chart of one panel, in which the stages of the stream are shaded."""
    panels, bands = [ChartPanel("", lines)], stages_of_groups(groups)
    return LineChart(**words, x_label=X_LABEL, panels=panels, bands=bands, n_colours=len(groups))


def faint_words(lines: Sequence[Line]) -> str:
    """Says what faint lines are, where there are any."""
    return "Every seed is faint, their mean bold. " if any(line.faint for line in lines) else ""


def growth_chart(groups: Sequence[Group], key: Literal["n_experts", "n_parameters"]) -> LineChart | None:
    """Shows how the number of experts or of parameters grows, beside learners that do not; None where not logged."""
    logged = ("progress", "evaluation")
    read: Reader = lambda run: values_of([row for row in run.record.rows if row["event"] in logged], key)  # noqa: E731
    lines = group_lines(groups, read, stepped=True)
    if not lines:
        return None
    title, label = _GROWTH[key]
    return one_panel(
        groups,
        lines,
        key=key,
        title=title,
        caption="A mixture starts empty and adds an expert whenever its memory of new samples is full; "
        "other learners are one model.",
        alt=f"{title}, against batches learned. {line_ends(lines)}",
        y_label=label,
        y_range=(0, 1.08 * max(y for line in lines for y in line.y if y is not None) or 1.0),
    )


def task_chart(groups: Sequence[Group]) -> LineChart | None:
    """Shows the accuracy of every task over the stream, and the average over the tasks that have appeared."""
    first = groups[0].runs[0]
    metric = "task_accuracy" if first.metric == "accuracy" else "task_bits_per_dim"
    panels = []
    if first.metric == "accuracy":
        average = group_lines(groups, lambda run: values_of(run.record.evaluations, "learned_accuracy"))
        panels.append(ChartPanel("average over tasks seen so far", average))
    for task, name in enumerate(first.task_names):
        lines = group_lines(groups, lambda run, task=task: values_of(run.record.evaluations, metric, task))  # type: ignore[misc]
        panels.append(ChartPanel(name, lines, first.stages_of(task)))
    if not any(panel.lines for panel in panels):
        return None
    finals = "; ".join(f"{panel.title}: {line_ends(panel.lines)}" for panel in panels if panel.lines)
    return LineChart(
        key="tasks",
        title="Every task over the stream",
        caption="A task is learned while it is streamed (shaded); a "
        + ("fall" if first.metric == "accuracy" else "rise")
        + " afterwards is forgetting.",
        alt=f"One panel per task against batches learned. {finals}",
        x_label=X_LABEL,
        y_label="accuracy (%)" if first.metric == "accuracy" else "bits per dimension",
        panels=panels,
        y_range=(0, 100) if first.metric == "accuracy" else None,
        n_colours=len(groups),
    )


def mean_curve(curves: Sequence[Curve]) -> tuple[list[float], list[float]]:
    """Averages curves at every x that lies within all of them, interpolating linearly between their points.

    Example:
        >>> mean_curve([([0, 2], [0.0, 2.0]), ([0, 1, 2], [2.0, 2.0, 2.0])])
        ([0.0, 1.0, 2.0], [1.0, 1.5, 2.0])
    """
    points = [_measured(curve) for curve in curves]
    low, high = max(x[0] for x, _ in points), min(x[-1] for x, _ in points)
    grid = sorted({float(value) for x, _ in points for value in x if low <= value <= high})
    return grid, np.mean([np.interp(grid, x, y) for x, y in points], axis=0).tolist()


def _measured(curve: Curve) -> tuple[list[int], list[float]]:
    pairs = [(x, float(y)) for x, y in zip(*curve, strict=True) if y is not None]
    return [x for x, _ in pairs], [y for _, y in pairs]


def group_lines(groups: Sequence[Group], read: Reader, *, stepped: bool = False) -> list[Line]:
    """Draws for every group a faint line per seed and a bold one for their mean; a single seed is bold."""
    lines = []
    for colour, group in enumerate(groups):
        curves = {run.seed: curve for run in group.runs if _measured(curve := read(run))[0]}
        if len(curves) > 1:
            for seed, (x, y) in curves.items():
                lines.append(Line(f"{group.label}, seed {seed}", x, y, colour, faint=True, stepped=stepped))
            lines.append(Line(group.label, *mean_curve(list(curves.values())), colour, stepped=stepped))
        elif curves:
            lines.append(Line(group.label, *next(iter(curves.values())), colour, stepped=stepped))
    return lines


def values_of(rows: Sequence[Mapping[str, Any]], metric: str, task: int | None = None) -> Curve:
    """Returns the steps of lines of a log and a metric at each, a task's where it is a list; None where absent."""
    return [row["step"] for row in rows], [_number(row.get(metric), task) for row in rows]


def _number(value: Any, i: int | None) -> float | None:
    if i is not None:
        value = value[i] if isinstance(value, list) and i < len(value) else None
    return value if isinstance(value, int | float) else None


def stages_of_groups(groups: Sequence[Group]) -> list[Band]:
    """Returns the stages of the run whose record names the most."""
    return max((run.stages for group in groups for run in group.runs), key=len)


def line_ends(lines: Sequence[Line]) -> str:
    """Says in words with which values the bold lines end."""
    ends = [(line.label, [y for y in line.y if y is not None][-1]) for line in lines if not line.faint]
    return ", ".join(f"{label} ends at {value:.4g}" for label, value in ends) + "."
