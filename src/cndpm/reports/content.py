"""The content of a report before it becomes files or a page: comparisons, tables and figures of all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cndpm.experiments.record import RecordError
from cndpm.paper.experiment import Experiment
from cndpm.reports.anatomy import anatomy, sample_grid
from cndpm.reports.answers_ahead import prequential_chart
from cndpm.reports.collection import Collection, Problem, collect
from cndpm.reports.composition import composition_chart
from cndpm.reports.curves import growth_chart, metric_chart, task_chart
from cndpm.reports.figures import Figure
from cndpm.reports.groups import Comparison, Group, compare
from cndpm.reports.pruned import find_prunings, pruning_table
from cndpm.reports.run import Run
from cndpm.reports.tables import Table, cell_group, comparison_table, experiment_table


@dataclass(frozen=True)
class StreamPart:
    """One stream: a table of all groups and the figures that compare them."""

    comparison: Comparison
    table: Table
    figures: list[Figure]


@dataclass(frozen=True)
class Exhibit:
    """The results of one of the paper's experiments: a table, and figures where the paper has them."""

    table: Table
    figures: list[Figure] = field(default_factory=list)


@dataclass(frozen=True)
class Content:
    """Everything that a report shows."""

    collection: Collection  # the runs, and the folders that could not be read
    parts: list[StreamPart]  # one per stream
    exhibits: list[Exhibit]  # the paper's experiments that were asked for, and the results of pruning

    @property
    def tables(self) -> list[Table]:
        """The tables of the paper's experiments, then one per stream."""
        return [*(exhibit.table for exhibit in self.exhibits), *(part.table for part in self.parts)]


def gather(
    paths: Sequence[str | Path],
    *,
    experiments: Sequence[Experiment] = (),
    preset: str = "paper",
    n_seeds: int | None = None,
    overrides: Sequence[str] = (),
    without: Mapping[Path, str] = MappingProxyType({}),
) -> Content:
    """Reads all runs at or under `paths` and compares them."""
    collection = _left(collect(paths), without)
    parts = []
    for comparison in compare(collection.runs):
        groups = comparison.groups
        charts = [
            prequential_chart(groups),
            metric_chart(groups),
            growth_chart(groups, "n_experts"),
            growth_chart(groups, "n_parameters"),
            task_chart(groups),
        ]
        table = comparison_table(comparison)
        parts.append(StreamPart(comparison, table, [chart for chart in charts if chart is not None]))
    found = [group for part in parts for group in part.comparison.groups]
    expected: dict[str, Any] = {"preset": preset, "n_seeds": n_seeds, "overrides": overrides}
    exhibits = [_exhibit(one, found, **expected) for one in experiments]
    problems = []
    for file in find_prunings(paths):
        try:
            exhibits.append(Exhibit(pruning_table(file)))
        except RecordError as error:
            problems.append(Problem(file.parent, str(error)))
    return Content(replace(collection, problems=(*collection.problems, *problems)), parts, exhibits)


def _left(collection: Collection, without: Mapping[Path, str]) -> Collection:
    runs = tuple(run for run in collection.runs if run.record.folder not in without)
    return Collection(runs, (*collection.problems, *(Problem(*one) for one in without.items())))


def _exhibit(experiment: Experiment, groups: Sequence[Group], **expected: Any) -> Exhibit:
    """Makes an experiment's table; for the experiment on samples, also the samples of its first run."""
    table = experiment_table(experiment, groups, **expected)
    if experiment.analysis != "samples":
        return Exhibit(table)
    group = cell_group(experiment.cells[0], groups, expected["preset"], expected["overrides"])
    grids = [sample_grid(run) for run in group.complete] if group is not None else []
    return Exhibit(table, [grid for grid in grids[:1] if grid is not None])


def run_figures(run: Run) -> list[Figure]:
    """Returns the figures of one run that its record allows."""
    figures = [composition_chart(run), *anatomy(run)]
    return [figure for figure in figures if figure is not None]
