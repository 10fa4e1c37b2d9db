"""The content of a report before it becomes files or a page: comparisons, tables and figures of all runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cndpm.experiments.metrics import mean, standard_error
from cndpm.experiments.record_files import RecordError, read_json
from cndpm.paper.experiment import Experiment, Published
from cndpm.reports.anatomy import ANATOMY, sample_grid
from cndpm.reports.answers_ahead import prequential_chart
from cndpm.reports.collection import Collection, Problem, collect
from cndpm.reports.curves import growth_chart, metric_chart, task_chart
from cndpm.reports.figures import Figure
from cndpm.reports.groups import Comparison, Group, compare
from cndpm.reports.run import Run
from cndpm.reports.tables import Row, Table, TableEntry, cell_group, comparison_table, experiment_table

_METRICS = ("accuracy", "n_experts")


def find_prunings(paths: Sequence[str | Path]) -> list[Path]:
    """Finds the files of the paper's pruning experiment at or under the given folders."""
    return sorted({file for path in paths for file in Path(path).rglob("pruning.json")})


def pruning_table(file: Path) -> Table:
    """Makes a table of experts and accuracy before and after pruning."""
    try:
        analysis = read_json(file, sealed=False)
        rows = tuple(_row(analysis, moment) for moment in ("before", "after"))
        return Table(f"Pruning of experts more alike than {analysis['threshold']:g}", _METRICS, rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{file} is damaged: {error}") from error


def _row(analysis: dict[str, Any], moment: str) -> Row:
    entries = {}
    for metric in _METRICS:
        values = [float(run[moment][metric]) for run in analysis["runs"]]
        published = Published(float(analysis["paper"][moment][metric]))
        entries[metric] = TableEntry(mean(values), standard_error(values), published)
    return Row(f"{moment} pruning", "", len(analysis["runs"]), entries)


@dataclass(frozen=True)
class Part:
    """One stream, or one of the paper's experiments: a table, and figures."""

    table: Table
    figures: list[Figure] = field(default_factory=list)


@dataclass(frozen=True)
class Content:
    """Everything that a report shows."""

    collection: Collection  # the runs, and the folders that could not be read
    comparisons: list[Comparison]  # one per stream
    parts: list[Part]  # of these, in their order
    exhibits: list[Part]  # the paper's experiments that were asked for, and the results of pruning

    @property
    def tables(self) -> list[Table]:
        """The tables of the paper's experiments, then one per stream."""
        return [part.table for part in (*self.exhibits, *self.parts)]


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
    found = collect(paths)
    runs = tuple(run for run in found.runs if run.record.folder not in without)
    collection = Collection(runs, (*found.problems, *(Problem(*one) for one in without.items())))
    parts, comparisons = [], compare(collection.runs)
    for comparison in comparisons:
        its = comparison.groups
        charts = [
            prequential_chart(its),
            metric_chart(its),
            growth_chart(its, "n_experts"),
            growth_chart(its, "n_parameters"),
            task_chart(its),
        ]
        parts.append(Part(comparison_table(comparison), [chart for chart in charts if chart is not None]))
    groups = [group for comparison in comparisons for group in comparison.groups]
    expected: dict[str, Any] = {"preset": preset, "n_seeds": n_seeds, "overrides": overrides}
    exhibits = [_exhibit(one, groups, **expected) for one in experiments]
    problems = []
    for file in find_prunings(paths):
        try:
            exhibits.append(Part(pruning_table(file)))
        except RecordError as error:
            problems.append(Problem(file.parent, str(error)))
    collection = replace(collection, problems=(*collection.problems, *problems))
    return Content(collection, comparisons, parts, exhibits)


def _exhibit(experiment: Experiment, groups: Sequence[Group], **expected: Any) -> Part:
    """Makes an experiment's table; for the experiment on samples, also the samples of its first run."""
    table = experiment_table(experiment, groups, **expected)
    if experiment.analysis != "samples":
        return Part(table)
    group = cell_group(experiment.cells[0], groups, expected["preset"], expected["overrides"])
    grids = [sample_grid(run) for run in group.complete] if group is not None else []
    return Part(table, [grid for grid in grids[:1] if grid is not None])


FIGURES: Mapping[str, Callable[[Run], Figure | None]] = {
    "accuracy": lambda run: metric_chart([run.as_group()]),
    "prequential": lambda run: prequential_chart([run.as_group()]),
    "experts": lambda run: growth_chart([run.as_group()], "n_experts"),
    "parameters": lambda run: growth_chart([run.as_group()], "n_parameters"),
    "tasks": lambda run: task_chart([run.as_group()]),
    **ANATOMY,
}
"""The figures of one run, by the names that :meth:`Run.plot` takes."""
