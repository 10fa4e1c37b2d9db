"""Writes a report: the page, the tables and the figures, all into one folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cndpm.experiments.record import RecordError
from cndpm.paper.experiment import Experiment
from cndpm.reports.anatomy import anatomy
from cndpm.reports.content import Content, Part
from cndpm.reports.figures import Figure
from cndpm.reports.formats import TEXT_FORMATS
from cndpm.reports.groups import Comparison
from cndpm.reports.html import render_page, shown
from cndpm.validation import ConfigError

__all__ = ["Report", "write_report"]

FIGURE_FORMATS = ("png", "pdf", "svg")
"""Formats of figures as files."""

FORMATS = ("html", *TEXT_FORMATS, *FIGURE_FORMATS)
"""All formats that a report can be written in."""


@dataclass(frozen=True)
class Report:
    """A report that was written.

    Attributes:
        content: Its content.
        files: All files, the page first.
    """

    content: Content
    files: tuple[Path, ...]

    @property
    def page(self) -> Path | None:
        """The HTML page; None where it was not asked for."""
        return next((file for file in self.files if file.suffix == ".html"), None)


def write_report(
    paths: Sequence[str | Path],
    out: str | Path,
    *,
    formats: Sequence[str] = ("html", "md", "csv", "tex"),
    experiments: Sequence[Experiment] = (),
    preset: str = "paper",
    n_seeds: int | None = None,
    overrides: Sequence[str] = (),
) -> Report:
    """Reports every run at or under `paths`.

    Args:
        paths: Folders of records, or folders above them.
        out: Where the files go; created if missing, files of the same name are replaced.
        formats: The formats to write, of :data:`FORMATS`. Figures (png, pdf, svg) go to ``out/figures``.
        experiments: Experiments of the paper to make tables of.
        preset: The settings that the experiments' runs started from.
        n_seeds: Runs expected per cell of the experiments; None expects as many as the paper has.
        overrides: Overrides of all their cells, as for ``--set``.

    Raises:
        ConfigError: A format is unknown.
        RecordError: There is nothing to report, or the folder cannot be written.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ConfigError(f"formats are {', '.join(FORMATS)}; got {', '.join(unknown)}")
    options: dict[str, Any] = {"experiments": experiments, "preset": preset, "n_seeds": n_seeds, "overrides": overrides}
    try:
        content, files = shown(paths, lambda content: _write(content, Path(out), formats), **options)
        return Report(content, tuple(files))
    except OSError as error:
        raise RecordError(f"cannot write the report to {out}: {error.strerror or error}") from error


def _write(content: Content, out: Path, formats: Sequence[str]) -> list[Path]:
    if not content.collection.runs and not content.exhibits:
        reasons = "; ".join(f"{one.folder}: {one.reason}" for one in content.collection.problems)
        raise RecordError(f"there is no run to report. {reasons}")
    out.mkdir(parents=True, exist_ok=True)
    files = []
    if "html" in formats:
        files.append(out / "index.html")
        files[-1].write_text(render_page(content), encoding="utf-8")
    for ending in (name for name in formats if name in TEXT_FORMATS):
        files.append(out / f"tables.{ending}")
        files[-1].write_text("\n".join(TEXT_FORMATS[ending](table) for table in content.tables), encoding="utf-8")
    kinds = [name for name in formats if name in FIGURE_FORMATS]
    return files + (_write_figures(content, out / "figures", kinds) if kinds else [])


def _write_figures(content: Content, folder: Path, kinds: Sequence[str]) -> list[Path]:
    from cndpm.reports.drawing import save_figure  # here: a page needs no matplotlib, which is slow to import

    folder.mkdir(exist_ok=True)
    files = []
    for comparison, part in zip(content.comparisons, content.parts, strict=True):
        for name, figure in _named(comparison, part):
            files += save_figure(figure, folder / name, kinds)
    return files


def _named(comparison: Comparison, part: Part) -> Iterator[tuple[str, Figure]]:
    """Yields the comparing figures and the anatomy of every group's first mixture, with file names."""
    scenario = comparison.scenario
    for figure in part.figures:
        yield file_name(scenario, figure.key), figure
    for group in comparison.groups:
        run = next((run for run in group.complete if "expert_counts" in run.last), None)
        for figure in [] if run is None else anatomy(run):
            yield file_name(scenario, group.label, figure.key), figure


def file_name(*words: str) -> str:
    """Joins words to a file's name: other characters than letters, digits, dots and dashes become dashes."""
    return "-".join(re.sub(r"[^\w.+=-]+", "-", word)[:60].strip("-.") or "run" for word in words)
