"""Lays tables out as rows of text, and writes them for the terminal, as Markdown, as CSV and as LaTeX.

A row per configuration; or, where the same learners stand in several columns of the paper's table, a row per learner
with the columns side by side as there; or, where one learner stands in several columns, a row per metric. An arrow
behind a value says that it is above or below the paper's by more than noise. Names are data, and are escaped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.console import Group
from rich.text import Text

from cndpm.errors import printable
from cndpm.experiments.printed_tables import METRICS, FoldingTable, format_value
from cndpm.reports.tables import Row, Table, TableEntry

_NO_ENTRY = TableEntry()


class Written(NamedTuple):
    """A text of a table, and the entry whose value it is: whether that is marked, and where it comes from."""

    text: str
    entry: TableEntry = _NO_ENTRY


Layout = tuple[list[str], list[list[Written]]]
"""The header of a table, (n_columns,), and its rows, (n_rows, n_columns)."""


def lay_out(table: Table) -> Layout:
    """Makes every metric a column, followed by the paper's value where the table has any."""
    columns = list(dict.fromkeys(row.column for row in table.rows))
    labels = list(dict.fromkeys(row.label for row in table.rows))
    if len(labels) == len(table.rows):
        return _one_below_another(table)
    if len(labels) == 1 and len(table.metrics) > 1:
        return _a_row_per_metric(table)
    return _side_by_side(table, labels, columns)


def _one_below_another(table: Table) -> Layout:
    """Makes a row of every configuration, with the difference to the paper."""
    several = len({row.column for row in table.rows}) > 1
    with_paper = _published(table.rows, table.metrics)
    header = ["learner", *(["scenario"] if several else []), "runs"]
    for metric in table.metrics:
        header += [METRICS[metric].label, *(["paper", "difference"] if metric in with_paper else [])]
    rows = []
    for row in table.rows:
        names = [Written(row.label), *([Written(row.column)] if several else []), Written(str(row.n_seeds))]
        values = [_written(m, row.entries[m])[: 3 if m in with_paper else 1] for m in table.metrics]
        rows.append([*names, *(text for texts in values for text in texts)])
    return header, rows


def _a_row_per_metric(table: Table) -> Layout:
    """Makes a row of every metric of one learner, and a column of every configuration."""
    header = [table.rows[0].label]
    for row in table.rows:
        header += [f"{row.column}, {row.n_seeds} run{'s' if row.n_seeds != 1 else ''}", "paper"]
    rows = [
        [Written(METRICS[m].label), *(text for row in table.rows for text in _written(m, row.entries[m])[:2])]
        for m in table.metrics
    ]
    return header, rows


def _side_by_side(table: Table, labels: Sequence[str], columns: Sequence[str]) -> Layout:
    """Makes a row per label; every column of the paper's table has its metrics, ours and the paper's."""
    cells = {(row.label, row.column): row for row in table.rows}
    header = ["learner", "runs"]
    rows = [[Written(label), Written(_seeds(table, label))] for label in labels]
    for column in columns:
        members = [row for row in table.rows if row.column == column]
        with_paper = _published(members, table.metrics)
        for i, metric in enumerate(_present(members, table.metrics)):
            n = 2 if metric in with_paper else 1
            name = f"{column}: {METRICS[metric].label}" if i == 0 else METRICS[metric].label
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


def _written(metric: str, entry: TableEntry) -> list[Written]:
    """Returns our value, the paper's, and the difference with its sign."""
    paper, difference = entry.published, entry.difference
    arrow = "" if not entry.beyond_noise else " ↑" if (difference or 0) > 0 else " ↓"
    ours = Written(format_value(metric, entry.value, entry.error) + arrow, entry)
    theirs = Written(format_value(metric, paper.value, paper.error) if paper else "–")
    if difference is None:
        return [ours, theirs, Written("–")]
    return [ours, theirs, Written(("+" if difference >= 0 else "−") + format_value(metric, abs(difference)))]


def to_terminal(table: Table) -> Group:
    """Makes a table for rich's console; missing runs follow with their commands.

    The best values are bold, those that differ from the paper's by more than noise yellow.
    """
    header, rows = lay_out(table)
    made = FoldingTable(
        printable(table.title), list(map(printable, header)), [list(map(_styled, row)) for row in rows], right=True
    )
    missing = (f"  missing: {gap.label}: {gap.reason}\n    {gap.command}" for gap in table.missing)
    return Group(made, *(Text(printable(text)) for text in missing))


def _styled(cell: Written) -> Text:
    styles = ["bold"] * cell.entry.best + ["yellow"] * cell.entry.beyond_noise
    return Text(printable(cell.text), style=" ".join(styles))


def to_markdown(table: Table) -> str:
    """Makes a Markdown table with a heading, followed by the runs that are missing."""
    lines = [f"### {_escape_markdown(table.title)}", "", markdown_table(table)]
    if table.missing:
        lines += ["", "Missing:", ""]
        lines += [f"- {_escape_markdown(g.label)}: {g.reason}: {_code(g.command)}" for g in table.missing]
    return "\n".join(lines) + "\n"


def markdown_table(table: Table) -> str:
    """Makes the table alone: the best values are bold, and each is a link to the record that holds it, if one does."""
    header, rows = lay_out(table)
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(map(_line, [map(_escape_markdown, header), rule, *(map(_linked, row) for row in rows)]))


def _linked(cell: Written) -> str:
    """Makes a text bold where it is the best, and a link to its first source; others follow as numbers."""
    text, best = _escape_markdown(cell.text), cell.entry.best
    links = [f"[{text if not i else i + 1}]({source})" for i, source in enumerate(cell.entry.sources)] or [text]
    return " ".join([f"**{links[0]}**" if best else links[0], *links[1:]])


def to_csv(table: Table) -> str:
    """Makes a CSV of unrounded numbers: for every metric its mean and standard error, ours and the paper's."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ("", "_standard_error", "_paper", "_paper_standard_error")
    writer.writerow(["learner", "scenario", "n_seeds", *(m + n for m in table.metrics for n in names)])
    for row in table.rows:
        numbers: list[float | None] = []
        for entry in (row.entries[metric] for metric in table.metrics):
            paper = entry.published
            numbers += [entry.value, entry.error, paper.value if paper else None, paper.error if paper else None]
        writer.writerow(
            [_as_text(row.label), _as_text(row.column), row.n_seeds, *("" if n is None else repr(n) for n in numbers)]
        )
    return out.getvalue()


def to_latex(table: Table) -> str:
    r"""Makes a ``tabular`` for a paper that uses the package booktabs; the best values are in ``\textbf``."""
    header, rows = lay_out(table)
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule"]
    lines += [" & ".join(map(_escape_latex, header)) + r" \\", r"\midrule"]
    for row in rows:
        texts = ((_escape_latex(cell.text), cell.entry.best) for cell in row)
        lines.append(" & ".join(rf"\textbf{{{text}}}" if best else text for text, best in texts) + r" \\")
    return "\n".join([f"% {_one_line(table.title)}", *lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


_FORMULAS = tuple("=+-@")

TEXT_FORMATS: Mapping[str, Callable[[Table], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
"""The functions that write a table as text, by the ending of the file."""


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escape_markdown(text: str) -> str:
    """Escapes text for Markdown, HTML included."""
    text = _one_line(text)
    for char in "\\`*_|[]":
        text = text.replace(char, "\\" + char)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _code(text: str) -> str:
    fence = "`" * (1 + max((len(run) for run in text.split() if set(run) == {"`"}), default=0) + text.count("`"))
    return f"{fence} {_one_line(text)} {fence}" if "`" in text else f"`{_one_line(text)}`"


def _as_text(text: str) -> str:
    """Returns a cell that spreadsheets show: one that begins like a formula would be carried out, and gets a quote."""
    text = _one_line(text)
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _escape_latex(text: str) -> str:
    names = {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
        "−": "$-$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "–": "--",
        "α": r"$\alpha$",
    }
    return "".join(names.get(char, "\\" + char if char in "&%$#_{}" else char) for char in _one_line(text))
