"""Tables of results: mean and standard error over seeds, the paper's value and the difference, and missing runs.

A value is marked as the best of its column only where its distance to the runner-up exceeds the sum of their standard
errors; a single seed has no error, and so is never marked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cndpm.experiments.metrics import over_seeds
from cndpm.experiments.printed_tables import METRICS
from cndpm.paper.experiment import Cell, Experiment, Published
from cndpm.paper.reproduction import cell_config
from cndpm.reports.groups import Comparison, Group, matches, published_values
from cndpm.reports.stories import resume_command, seeds_command

_UPPER_BOUNDS = ("iid-offline", "iid-online")
"""Learners that do not see the stream in its order: shown, but not compared with those that do."""


@dataclass(frozen=True)
class TableEntry:
    """One number of a table."""

    value: float | None = None  # mean over the seeds; None where there is none
    error: float | None = None  # its standard error; None for fewer than two seeds
    published: Published | None = None  # the paper's value
    best: bool = False  # whether it is marked as the best of its column
    n_runs: int = 0  # runs behind the value
    sources: tuple[str, ...] = ()  # addresses of the records that hold them, for formats with links

    @classmethod
    def of(cls, runs: Sequence[Mapping[str, Any]], metric: str, published: Published | None) -> TableEntry:
        """Makes the entry of some runs."""
        having = [run for run in runs if run.get(metric) is not None]
        sources = Counter(run["source"] for run in having if "source" in run)
        most = tuple(source for source, _ in sources.most_common())
        return cls(*over_seeds(having, metric), published, n_runs=len(having), sources=most)

    @property
    def beyond_noise(self) -> bool:
        """Whether it differs from the paper's value by more than both errors explain."""
        if self.value is None or self.published is None or not self.n_runs:
            return False
        return self.published.differs_from(self.value, self.error, self.n_runs)

    @property
    def difference(self) -> float | None:
        """Our value minus the paper's."""
        if self.value is None or self.published is None:
            return None
        return self.value - self.published.value


@dataclass(frozen=True)
class Missing:
    """A run that does not exist or is not complete, and the command that makes it."""

    label: str
    reason: str
    command: str


@dataclass(frozen=True)
class Row:
    """One configuration."""

    label: str  # its name
    column: str  # the column of the paper's table that it stands in; else the scenario
    n_seeds: int  # number of complete runs
    entries: dict[str, TableEntry]  # the numbers, by metric
    reference: bool = False  # whether it is shown only for reference, and never marked as the best


@dataclass(frozen=True)
class Table:
    """Rows that are compared with each other within each column of the paper's table."""

    title: str  # one line
    metrics: tuple[str, ...]  # the names of the metrics, in order; keys of :data:`METRICS`
    rows: tuple[Row, ...]  # one per configuration
    missing: tuple[Missing, ...] = field(default=())  # runs that do not exist or are not complete


def comparison_table(comparison: Comparison) -> Table:
    """Makes the table of all groups on one stream."""
    rows = []
    for group in comparison.groups:
        published = published_values(group.config)
        rows.append(_row(group, group.label, comparison.scenario, published, tuple(METRICS)))
    present = tuple(m for m in METRICS if any(row.entries[m].value is not None for row in rows))
    hidden = {"classifier_accuracy_init", "classifier_accuracy_final"}
    if all(_same_size(row) for row in rows):
        hidden.add("n_numbers_kept")
    metrics = tuple(metric for metric in present if metric not in hidden)
    missing = [gap for group in comparison.groups for gap in _gaps(group, group.label, comparison.seeds)]
    return Table(comparison.scenario, metrics, _marked(rows, metrics), tuple(missing))


def experiment_table(
    experiment: Experiment,
    groups: Sequence[Group],
    *,
    preset: str = "paper",
    n_seeds: int | None = None,
    overrides: Sequence[str] = (),
) -> Table:
    """Makes the table of one of the paper's experiments, with every cell that it has in the paper."""
    rows, missing = [], []
    seeds = list(range(n_seeds or experiment.n_seeds))
    for cell in experiment.cells:
        group = cell_group(cell, groups, preset, overrides)
        label = f"{cell.label}, {cell.column}"
        if group is None:
            entries = {m: TableEntry(published=cell.published.get(m)) for m in experiment.metrics}
            rows.append(Row(cell.label, cell.column, 0, entries, cell.learner in _UPPER_BOUNDS))
            command = f"cndpm reproduce {experiment.name} --only {cell.learner} --seeds {len(seeds)}"
            missing.append(Missing(label, "no run", command))
        else:
            rows.append(_row(group, cell.label, cell.column, dict(cell.published), tuple(experiment.metrics)))
            missing += _gaps(group, label, seeds)
    return Table(experiment.title, tuple(experiment.metrics), _marked(rows, experiment.metrics), tuple(missing))


def reproduction_table(summary: Mapping[str, Any]) -> Table:
    """Makes the table of a reproduction from what :func:`cndpm.paper.reproduce` returns: ours beside the paper's."""
    metrics, rows = tuple(summary["metrics"]), []
    for cell in summary["cells"]:
        published = {metric: Published(**value) for metric, value in cell["published"].items()}
        entries = {m: TableEntry.of(cell["runs"], m, published.get(m)) for m in metrics}
        reference = cell["learner"] in _UPPER_BOUNDS
        rows.append(Row(cell["label"], cell["column"], len(cell["runs"]), entries, reference))
    return Table(summary["title"], metrics, _marked(rows, metrics))


def cell_group(cell: Cell, groups: Sequence[Group], preset: str, overrides: Sequence[str]) -> Group | None:
    """Finds the runs that belong to a cell, by their configuration; None where there are none."""
    wanted = cell_config(cell, preset, "cpu", overrides).to_json()
    return next((group for group in groups if matches(group.config, wanted)), None)


def _same_size(row: Row) -> bool:
    """Returns whether a learner keeps hardly more than its parameters, so that one column suffices."""
    kept, trained = row.entries["n_numbers_kept"].value, row.entries["n_parameters"].value
    return kept is None or trained is None or abs(kept - trained) <= 0.005 * kept


def _row(group: Group, label: str, column: str, published: dict[str, Published], metrics: Sequence[str]) -> Row:
    n = len(group.complete)
    entries = {m: TableEntry(*group.over_seeds(m), published.get(m), n_runs=n) for m in metrics}
    return Row(label, column, n, entries, group.runs[0].learner in _UPPER_BOUNDS)


def _marked(rows: Sequence[Row], metrics: Sequence[str]) -> tuple[Row, ...]:
    """Marks the best entry of every column, where it is ahead by more than the errors."""
    made = [dict(row.entries) for row in rows]
    for metric in metrics:
        for column in {row.column for row in rows}:
            among = [i for i, row in enumerate(rows) if row.column == column and not row.reference]
            best = _best([rows[i].entries[metric] for i in among], METRICS[metric].better)
            if best is not None:
                made[among[best]][metric] = replace(made[among[best]][metric], best=True)
    return tuple(replace(row, entries=entries) for row, entries in zip(rows, made, strict=True))


def _best(entries: Sequence[TableEntry], sign: int) -> int | None:
    """Returns the entry that is ahead of every other by more than the sum of their errors; None if there is none."""
    known = [(sign * e.value, e.error, i) for i, e in enumerate(entries) if e.value is not None]
    if not sign or len(known) < 2:
        return None
    value, error, best = max(known, key=lambda item: item[0])
    for other, other_error, i in known:
        if i != best and (error is None or other_error is None or value - other <= error + other_error):
            return None
    return best


def _gaps(group: Group, label: str, seeds: Sequence[int]) -> list[Missing]:
    """Lists the seeds of a group that were not run or were interrupted; a running one is not missing."""
    gaps = []
    for run in group.runs:
        if run.record.status == "interrupted":
            done = f"after batch {run.n_steps}" + (f" of {run.n_batches}" if run.n_batches else "")
            gaps.append(Missing(label, f"seed {run.seed} was stopped {done}", resume_command(run)))
    absent = sorted(set(seeds) - {run.seed for run in group.runs})
    for first, last in _stretches(absent):
        command = seeds_command(group.runs[0], first, last - first + 1)
        reason = f"seeds {first} to {last} were not run" if last > first else f"seed {first} was not run"
        gaps.append(Missing(label, reason, command or "–"))
    return gaps


def _stretches(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the first and the last of every stretch of consecutive numbers."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
