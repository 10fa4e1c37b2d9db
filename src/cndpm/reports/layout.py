"""Lays a table out as rows of text, before any format is chosen.

A row per configuration, or, where the same learners stand in several columns of the paper's table, a row per learner
with the columns side by side as there, or, where one learner stands in several columns, a row per metric. An arrow
behind a value says that it is above or below the paper's by more than noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cndpm.experiments.metric_texts import METRICS, format_value
from cndpm.reports.tables import Row, Table, TableEntry


@dataclass(frozen=True)
class TableLayout:
    """The texts of a table, and what is marked in it."""

    header: list[str]  # (n_columns,)
    rows: list[list[str]]  # (n_rows, n_columns)
    best: list[list[bool]]  # which are the best of their column, (n_rows, n_columns)
    differs: list[list[bool]]  # which differ from the paper's by more than noise, (n_rows, n_columns)
    sources: list[list[tuple[str, ...]]]  # addresses of the records behind each, (n_rows, n_columns)


_NO_ENTRY = TableEntry()


@dataclass(frozen=True)
class _Text:
    """A text of the table, and the entry whose value it is."""

    text: str
    entry: TableEntry = _NO_ENTRY


def lay_out(table: Table) -> TableLayout:
    """Makes every metric a column, followed by the paper's value where the table has any."""
    columns = list(dict.fromkeys(row.column for row in table.rows))
    labels = list(dict.fromkeys(row.label for row in table.rows))
    if len(labels) == len(table.rows):
        header, rows = _one_below_another(table)
    elif len(labels) == 1 and len(table.metrics) > 1:
        header, rows = _a_row_per_metric(table)
    else:
        header, rows = _side_by_side(table, labels, columns)
    return TableLayout(
        header,
        [[cell.text for cell in row] for row in rows],
        [[cell.entry.best for cell in row] for row in rows],
        [[cell.entry.beyond_noise for cell in row] for row in rows],
        [[cell.entry.sources for cell in row] for row in rows],
    )


def _one_below_another(table: Table) -> tuple[list[str], list[list[_Text]]]:
    """Makes a row of every configuration, with the difference to the paper."""
    several = len({row.column for row in table.rows}) > 1
    with_paper = _published(table.rows, table.metrics)
    header = ["learner", *(["scenario"] if several else []), "runs"]
    for metric in table.metrics:
        header += [METRICS[metric], *(["paper", "difference"] if metric in with_paper else [])]
    rows = []
    for row in table.rows:
        names = [_Text(row.label), *([_Text(row.column)] if several else []), _Text(str(row.n_seeds))]
        values = [_written(m, row.entries[m])[: 3 if m in with_paper else 1] for m in table.metrics]
        rows.append([*names, *(text for texts in values for text in texts)])
    return header, rows


def _a_row_per_metric(table: Table) -> tuple[list[str], list[list[_Text]]]:
    """Makes a row of every metric of one learner, and a column of every configuration."""
    header = [table.rows[0].label]
    for row in table.rows:
        header += [f"{row.column}, {row.n_seeds} run{'s' if row.n_seeds != 1 else ''}", "paper"]
    rows = [
        [_Text(METRICS[m]), *(text for row in table.rows for text in _written(m, row.entries[m])[:2])]
        for m in table.metrics
    ]
    return header, rows


def _side_by_side(table: Table, labels: Sequence[str], columns: Sequence[str]) -> tuple[list[str], list[list[_Text]]]:
    """Makes a row per label; every column of the paper's table has its metrics, ours and the paper's."""
    cells = {(row.label, row.column): row for row in table.rows}
    header = ["learner", "runs"]
    rows = [[_Text(label), _Text(_seeds(table, label))] for label in labels]
    for column in columns:
        members = [row for row in table.rows if row.column == column]
        with_paper = _published(members, table.metrics)
        for i, metric in enumerate(_present(members, table.metrics)):
            n = 2 if metric in with_paper else 1
            name = f"{column}: {METRICS[metric]}" if i == 0 else METRICS[metric]
            header += [name, "paper"][:n]
            for label, texts in zip(labels, rows, strict=True):
                row = cells.get((label, column))
                texts += _written(metric, TableEntry() if row is None else row.entries[metric])[:n]
    return header, rows


def _seeds(table: Table, label: str) -> str:
    """Returns the number of seeds of a learner, as a range where columns differ."""
    counts = [row.n_seeds for row in table.rows if row.label == label]
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)}–{max(counts)}"


def _published(rows: Sequence[Row], metrics: Sequence[str]) -> list[str]:
    return [m for m in metrics if any(row.entries[m].published is not None for row in rows)]


def _present(rows: Sequence[Row], metrics: Sequence[str]) -> list[str]:
    """Returns the metrics that have a value, ours or the paper's."""
    published = _published(rows, metrics)
    return [m for m in metrics if m in published or any(row.entries[m].value is not None for row in rows)]


def _written(metric: str, entry: TableEntry) -> list[_Text]:
    """Returns our value, the paper's, and the difference with its sign."""
    paper, difference = entry.published, entry.difference
    arrow = "" if not entry.beyond_noise else " ↑" if (difference or 0) > 0 else " ↓"
    ours = _Text(format_value(metric, entry.value, entry.error) + arrow, entry)
    theirs = _Text(format_value(metric, paper.value, paper.error) if paper else "–")
    if difference is None:
        return [ours, theirs, _Text("–")]
    return [ours, theirs, _Text(("+" if difference >= 0 else "−") + format_value(metric, abs(difference)))]
