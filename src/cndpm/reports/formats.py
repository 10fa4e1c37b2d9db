"""Writes tables for the terminal, as Markdown, as CSV and as LaTeX. Names are data, and are escaped in each."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence

from rich.console import Group
from rich.text import Text

from cndpm.errors import printable
from cndpm.experiments.folding_table import FoldingTable
from cndpm.reports.layout import lay_out
from cndpm.reports.tables import Table


def to_terminal(table: Table) -> Group:
    """Makes a table for rich's console; missing runs follow with their commands.

    The best values are bold, those that differ from the paper's by more than noise yellow.
    """
    layout = lay_out(table)
    rows = [
        [_styled(*cell) for cell in zip(*row, strict=True)]
        for row in zip(layout.rows, layout.best, layout.differs, strict=True)
    ]
    made = FoldingTable(printable(table.title), [printable(name) for name in layout.header], rows, right=True)
    missing = (f"  missing: {gap.label}: {gap.reason}\n    {gap.command}" for gap in table.missing)
    return Group(made, *(Text(printable(text)) for text in missing))


def _styled(text: str, is_best: bool, differs: bool) -> Text:
    return Text(printable(text), style=f"{'bold' if is_best else ''} {'yellow' if differs else ''}".strip())


def to_markdown(table: Table) -> str:
    """Makes a Markdown table with a heading, followed by the runs that are missing."""
    lines = [f"### {_escape_markdown(table.title)}", "", markdown_table(table)]
    if table.missing:
        lines += ["", "Missing:", ""]
        lines += [f"- {_escape_markdown(g.label)}: {g.reason}: {_code(g.command)}" for g in table.missing]
    return "\n".join(lines) + "\n"


def markdown_table(table: Table) -> str:
    """Makes the table alone: the best values are bold, and each is a link to the record that holds it, if one does."""
    layout = lay_out(table)
    lines = [_line(map(_escape_markdown, layout.header))]
    lines.append(_line("---" if i == 0 else "---:" for i in range(len(layout.header))))
    for row in zip(layout.rows, layout.best, layout.sources, strict=True):
        lines.append(_line(_linked(_escape_markdown(t), b, sources) for t, b, sources in zip(*row, strict=True)))
    return "\n".join(lines)


def _linked(text: str, best: bool, sources: Sequence[str]) -> str:
    """Makes a text bold where it is the best, and a link to its first source; others follow as numbers."""
    links = [f"[{text if not i else i + 1}]({source})" for i, source in enumerate(sources)] or [text]
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
    layout = lay_out(table)
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(layout.header) - 1)}}}", r"\toprule"]
    lines += [" & ".join(map(_escape_latex, layout.header)) + r" \\", r"\midrule"]
    for texts, marks in zip(layout.rows, layout.best, strict=True):
        escaped = map(_escape_latex, texts)
        lines.append(" & ".join(rf"\textbf{{{t}}}" if b else t for t, b in zip(escaped, marks, strict=True)) + r" \\")
    return "\n".join([f"% {_one_line(table.title)}", *lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


_FORMULAS = tuple("=+-@")

TEXT_FORMATS: Mapping[str, Callable[[Table], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
"""The functions that write a table as text, by the ending of the file."""


def _line(cells: object) -> str:
    return "| " + " | ".join(cells) + " |"  # type: ignore[arg-type]


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
