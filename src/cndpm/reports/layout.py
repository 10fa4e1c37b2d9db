"""Lays a table out as rows of text, before any format is chosen.

A row per configuration, or, where the same learners stand in several columns of the paper's table, a row per learner
with the columns side by side as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cndpm.experiments.terminal import format_value
from cndpm.reports.tables import METRICS, Row, Table, TableEntry


@dataclass(frozen=True)
class TableLayout:
    """The texts of a table, and which of them are marked as best.

    Attributes:
        header: (n_columns,).
        rows: (n_rows, n_columns).
        best: (n_rows, n_columns).
    """

    header: list[str]
    rows: list[list[str]]
    best: list[list[bool]]


def lay_out(table: Table) -> TableLayout:
    """Makes every metric a column, followed by the paper's value where the table has any."""
    columns = list(dict.fromkeys(row.column for row in table.rows))
    labels = list(dict.fromkeys(row.label for row in table.rows))
    return _side_by_side(table, labels, columns) if len(labels) < len(table.rows) else _one_below_another(table)


def _one_below_another(table: Table) -> TableLayout:
    """Makes a row of every configuration, with the difference to the paper."""
    several = len({row.column for row in table.rows}) > 1
    with_paper = _published(table.rows, table.metrics)
    header = ["learner", *(["scenario"] if several else []), "seeds"]
    for metric in table.metrics:
        header += [METRICS[metric], *(["paper", "difference"] if metric in with_paper else [])]
    rows, best = [], []
    for row in table.rows:
        texts = [row.label, *([row.column] if several else []), str(row.n_seeds)]
        marks = [False] * len(texts)
        for metric in table.metrics:
            written = _written(metric, row.entries[metric])
            written = written if metric in with_paper else written[:1]
            texts += written
            marks += [row.entries[metric].best, False, False][: len(written)]
        rows.append(texts)
        best.append(marks)
    return TableLayout(header, rows, best)


def _side_by_side(table: Table, labels: Sequence[str], columns: Sequence[str]) -> TableLayout:
    """Makes a row per label; every column of the paper's table has its metrics, ours and the paper's."""
    cells = {(row.label, row.column): row for row in table.rows}
    header = ["learner", "seeds"]
    rows, best = [[label, _seeds(table, label)] for label in labels], [[False, False] for _ in labels]
    for column in columns:
        members = [row for row in table.rows if row.column == column]
        with_paper = _published(members, table.metrics)
        for i, metric in enumerate(_present(members, table.metrics)):
            n = 2 if metric in with_paper else 1
            name = f"{column}: {METRICS[metric]}" if i == 0 else METRICS[metric]
            header += [name, "paper"][:n]
            for label, texts, marks in zip(labels, rows, best, strict=True):
                row = cells.get((label, column))
                entry = TableEntry() if row is None else row.entries[metric]
                texts += _written(metric, entry)[:n]
                marks += [entry.best, False][:n]
    return TableLayout(header, rows, best)


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


def _written(metric: str, entry: TableEntry) -> list[str]:
    """Returns our value, the paper's, and the difference with its sign."""
    paper = entry.published
    texts = [format_value(metric, entry.value, entry.error)]
    texts.append(format_value(metric, paper.value, paper.error) if paper else "–")
    difference = entry.difference
    if difference is None:
        return [*texts, "–"]
    return [*texts, ("+" if difference >= 0 else "−") + format_value(metric, abs(difference))]
