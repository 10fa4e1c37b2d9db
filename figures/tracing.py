"""Traces the numbers of hand-written pages: which stand in a record, and which do not.

Every number with a decimal point on a page, outside of code and of the tables that ``figures`` writes itself, is looked
for in the records that ``figures/traced/NAME.toml`` names for the page: as a value of a row, or as a mean or standard
error over the seeds of rows that are otherwise alike, rounded as it is printed. What was published by others and what
is a setting is listed there too. The rest is named at the end of its section, for the reader to see:

    *Without a record: 81.07, 82.48.*

So a new number that no record holds changes the page that ``python -m figures`` writes, and ``--check`` fails.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cndpm.paper import EXPERIMENTS
from figures.records import FigureError, Row, read_rows

__all__ = ["TracedPage", "load_traced"]

_HEADING = re.compile(r"^(?=#+ )", re.MULTILINE)
_WRITTEN = re.compile(r"<!-- figures: .*?<!-- end -->", re.DOTALL)
_MARK = re.compile(r"\n\n\*Without a record: [^*]*\*")
_CODE = re.compile(r"^```[\s\S]*?^```|^ {4,}\S.*$|`[^`\n]*`|\]\([^)]*\)|(?:torch|Python) \d+\.\d+", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*\.\d+(?![\w.]*\.\d)")
_FEW = 12
"""As many numbers are named; of more it is said how many they are."""

_VARIED = ("n_patches", "class_order", "settings", "given", "epochs", "repeats", "fraction", "validation", "views")
"""Fields beside words that tell rows apart; rows that agree in all of them differ by their seeds."""

_SCALES = (1.0, 1e-6, 1e-3)
"""Numbers are printed as they are, in millions or in thousands."""


class TracedPage:
    """A page whose numbers are looked for in records.

    Args:
        file: The description, ``figures/traced/NAME.toml``: `page`, `records`, `sections` (by heading, other records
            than the page's) and `given` (settings and what others published, each with a word on what it is).
        root: The project.

    Attributes:
        path: The page.
        without_record: Its numbers that no record holds, in order.
    """

    def __init__(self, file: Path, root: Path) -> None:
        described = tomllib.loads(file.read_text(encoding="utf-8"))
        self.name, self.path = file.stem, root / described["page"]
        self._given: Mapping[str, str] = described.get("given", {})
        folder = root / "docs" / "results" / "records"
        self._values = _values(folder, described["records"])
        self._sections = {name: _values(folder, records) for name, records in described.get("sections", {}).items()}
        self._published = set(_published())
        self.without_record: list[str] = []

    def written(self) -> str:
        """Returns the page with the numbers that no record holds named at the end of every section."""
        text = _MARK.sub("", self.path.read_text(encoding="utf-8"))
        self.without_record = []
        unused = set(self._given) - set(_numbers(text))
        if unused:
            raise FigureError(f"{self.name}: {', '.join(sorted(unused))} are given and not on the page")
        sections = _HEADING.split(text)
        unknown = set(self._sections) - {_title(section) for section in sections}
        if unknown:
            raise FigureError(f"{self.name}: there is no section {', '.join(sorted(unknown))}")
        return "".join(map(self._marked, sections))

    def _marked(self, section: str) -> str:
        values = self._sections.get(_title(section), self._values)
        numbers = _numbers(section)
        missing = [number for number in numbers if not self._is_known(number, values)]
        self.without_record += missing
        if not missing:
            return section
        named = ", ".join(missing) if len(missing) <= _FEW else f"{len(missing)} of {len(numbers)} figures"
        body = section.rstrip("\n")
        return f"{body}\n\n*Without a record: {named}.*{section[len(body) :]}"

    def _is_known(self, number: str, values: Sequence[float]) -> bool:
        wanted, half = float(number.replace(",", "")), 0.5 * 10 ** -len(number.partition(".")[2])
        if number in self._given or wanted in self._published:
            return True
        return any(abs(abs(scale * value) - wanted) <= half * (1 + 1e-6) for value in values for scale in _SCALES)


def _title(section: str) -> str:
    """Returns the words of a section's heading; none for what stands before the first."""
    return section.partition("\n")[0].lstrip("# ")


def _values(folder: Path, records: Iterable[str]) -> list[float]:
    """Returns the numbers of records, and means and standard errors over seeds."""
    rows = [row for name in records for row in read_rows(folder / name)]
    return [*_leaves(rows), *_over_seeds(rows)]


def _numbers(text: str) -> list[str]:
    """Returns the numbers with a decimal point outside of code and written tables, each once, in order."""
    return list(dict.fromkeys(_NUMBER.findall(_CODE.sub(" ", _WRITTEN.sub(" ", text)))))


def _leaves(value: Any) -> Iterator[float]:
    """Yields every number in nested lists and mappings."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int | float):
        if math.isfinite(value):
            yield float(value)
        return
    for part in value.values() if isinstance(value, Mapping) else value:
        yield from _leaves(part)


def _over_seeds(rows: Iterable[Row]) -> Iterator[float]:
    """Yields means and standard errors of every number over rows that differ by their seed and their figures only."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        alike = {name: value for name, value in row.items() if isinstance(value, str) and name != "command"}
        alike |= {name: row.get(name) for name in _VARIED}
        groups.setdefault(repr(sorted(alike.items(), key=lambda item: item[0])), []).append(row)
    for group in groups.values():
        names = {name for row in group for name, value in row.items() if isinstance(value, int | float)} - {"seed"}
        for name in names:
            values = [float(row[name]) for row in group if isinstance(row.get(name), int | float)]
            if len(values) > 1:
                yield mean(values)
                yield stdev(values) / math.sqrt(len(values))


def _published() -> Iterator[float]:
    """Yields the paper's values and their standard errors."""
    for experiment in EXPERIMENTS.values():
        for value in (value for cell in experiment.cells for value in cell.published.values()):
            yield from (round(scale * value.value, 9) for scale in _SCALES)
            yield round(value.error or 0.0, 9)


def load_traced(root: Path) -> list[TracedPage]:
    """Returns the traced pages of a project, by name."""
    return [TracedPage(file, root) for file in sorted((root / "figures" / "traced").glob("*.toml"))]
