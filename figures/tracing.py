"""Traces the numbers of pages: each names the cell of a record that it was taken from.

Numbers are those of :mod:`figures.printed`. The names stand beside the page, in ``figures/cells/NAME.txt``, a line for
every number in the order of the page:

    95.29: drift.json stream=flip model=cndpm accuracy mean
    0.9: given, a threshold of pruning
    0.4: = 81.10 - 80.72
    12.5: no record

so that a number which is changed, or exchanged with another, is no longer the one that its line names. Writers write
the page and let ``python -m figures --name`` add the lines that are missing: it takes the cell of the section's records
whose name has most words in common with the sentence, and shows it. What a page's records are says a description
``figures/traced/NAME.toml``; a page without one has no records:

    page = "docs/results/drift.md"
    sources = ["evidence.json"]                  # of all sections but those below; see figures.sources

    [sections]
    "The streams" = [{ record = "drift.json", inside = ["models"] }]

    [given]                                      # settings, thresholds and limits, each with what it is
    "0.9" = "a threshold of pruning"

    [derived]                                    # follow from other numbers of the page
    "0.4" = "81.10 - 80.72"
"""

from __future__ import annotations

import ast
import operator
import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from figures.printed import Printed, places_of
from figures.records import FigureError
from figures.sources import cells_of

__all__ = ["NO_RECORD", "TracedPage", "load_traced"]

NO_RECORD = "no record"
_GIVEN, _DERIVED = "given, ", "= "

_UNTRACED = {"docs/log.md", "docs/changelog.md", "docs/settings.md", "docs/contributing.md", "docs/conduct.md"}
"""A diary, and pages that are written from something else."""

_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_FREE = {1.0, 100.0}
"""Constants of a derivation that need not stand on the page: shares and per cent."""


@dataclass(frozen=True)
class _Place:
    """A number on a page: the section's title, the page's text, and where in it the number begins."""

    number: Printed
    title: str
    text: str
    start: int

    @property
    def line(self) -> str:
        """The line that it stands on."""
        return self.text[self._first : self.text.find("\n", self.start)]

    @property
    def is_error(self) -> bool:
        """Whether it stands behind a plus-minus sign."""
        return self.text[self._first : self.start].rstrip().endswith("±")

    @property
    def column(self) -> str:
        """The heading of its column in a table; empty outside of tables."""
        if self.text[self._first] != "|":
            return ""
        table = re.split(r"\n(?!\|)", self.text[: self._first])[-1].lstrip("\n")
        cells, place = table.partition("\n")[0].split("|"), self.text[self._first : self.start].count("|")
        return cells[place] if place < len(cells) else ""

    @property
    def _first(self) -> int:
        return self.text.rfind("\n", 0, self.start) + 1

    def likeliest(self, cells: Sequence[str]) -> str:
        """Returns the cell whose name has most words in common with what stands about the number."""
        about = [_words(part) for part in (self.title, self.line, self.column)]

        def likeness(cell: str) -> float:
            words = _words(cell)
            shared = sum(word in part for word in words for part in about)
            return shared + 3 * (cell.endswith(" error") == self.is_error) - 0.01 * len(words)

        return max(cells, key=likeness, default=NO_RECORD)


class TracedPage:
    """A page whose numbers name their cells.

    Args:
        path: The page.
        root: The project.
        described: The description, see above; None where the page has no records.

    Example:
        >>> page = TracedPage.described(Path("figures/traced/drift.toml"), Path())
        >>> page.lost()
        []
    """

    def __init__(self, path: Path, root: Path, described: Mapping[str, Any] | None = None) -> None:
        self.path, self._has_records = path, described is not None
        self.name = path.relative_to(root).with_suffix("").as_posix().replace("/", "-")
        self._names = root / "figures" / "cells" / f"{self.name}.txt"
        told = described or {}
        self._given: Mapping[str, str] = told.get("given", {})
        self._derived: Mapping[str, str] = told.get("derived", {})
        folder = root / "docs" / "results" / "records"
        self._cells = cells_of(folder, told.get("sources", []))
        self._sections = {name: cells_of(folder, found) for name, found in told.get("sections", {}).items()}

    @classmethod
    def described(cls, file: Path, root: Path) -> TracedPage:
        """Returns the page of a description.

        Args:
            file: The description, ``figures/traced/NAME.toml``.
            root: The project.
        """
        described = tomllib.loads(file.read_text(encoding="utf-8"))
        return cls(root / described["page"], root, described)

    def lost(self, text: str | None = None) -> list[str]:
        """Returns a line for every number that is not the one its line names.

        Args:
            text: Of the page; None for what it has now.

        Raises:
            FigureError: The description names a section or a number that the page does not have, or a derivation that
                does not follow.
        """
        text = self.path.read_text(encoding="utf-8") if text is None else text
        self._check_description(text)
        places, lines = _places(text), self._lines()
        numbers = [place.number.text for place in places]
        for place, (number, _) in zip(places, lines, strict=False):
            if place.number.text != number:
                where = f"{place.title or 'before the first heading'}, {place.line.strip()[:80]}"
                return [f"{where}: {place.number.text} stands where {number} was named"]
        if len(numbers) != len(lines):
            return [f"{len(numbers)} numbers, of which {len(lines)} are named"]
        told = (self._fault(place, cell) for place, (_, cell) in zip(places, lines, strict=True))
        return [line for line in told if line]

    def kinds(self) -> tuple[int, int, int]:
        """Returns how many numbers name a cell, are given or follow from others, and have no record."""
        cells = [cell for _, cell in self._lines()]
        told, none = sum(cell.startswith((_GIVEN, _DERIVED)) for cell in cells), cells.count(NO_RECORD)
        return len(cells) - told - none, told, none

    def named(self) -> tuple[str, list[str]]:
        """Returns the lines that name all numbers, those kept that still hold, and what was named anew.

        Raises:
            FigureError: A number of a page with records is in none.
        """
        places, lines = _places(self.path.read_text(encoding="utf-8")), self._lines()
        kept: dict[int, str] = {}
        matched = SequenceMatcher(None, [n for n, _ in lines], [p.number.text for p in places], autojunk=False)
        for block in matched.get_matching_blocks():
            kept |= {block.b + k: lines[block.a + k][1] for k in range(block.size)}
        found: list[str] = []
        anew: list[str] = []
        for k, place in enumerate(places):
            cell = kept.get(k)
            if cell is None or self._fault(place, cell):
                cell = self._likeliest(place, found[-1].partition(": ")[2].strip() if found else "")
                anew.append(f"{self.path.name}, {place.title}: {place.number.text} is {cell}")
            found.append(f"{place.number.text}: {cell}\n")
        return "".join(found), anew

    def write_names(self) -> list[str]:
        """Writes the lines that name all numbers, and returns what was named anew."""
        text, anew = self.named()
        if text or self._names.exists():
            self._names.parent.mkdir(exist_ok=True)
            self._names.write_text(text, encoding="utf-8")
        return anew

    def follow(self) -> list[str]:
        """Prints numbers anew whose cells have changed, and returns a line for each: the sentence may not hold now."""
        text, changed = self.path.read_text(encoding="utf-8"), []
        places, lines = _places(text), self._lines()
        for k, place in reversed(list(enumerate(places))):
            cells, (number, cell) = self._cells_of(place), lines[k]
            if number != place.number.text or cell not in cells or not self._fault(place, cell):
                continue
            now = place.number.printed(cells[cell])
            text = text[: place.start] + now + text[place.start + len(number) :]
            lines[k] = (now, cell)
            changed.append(f"{self.path.name}, {place.title}: {number} is {now} now, {place.line.strip()[:120]}")
        if changed:
            self.path.write_text(text, encoding="utf-8")
            self._names.write_text("".join(f"{number}: {cell}\n" for number, cell in lines), encoding="utf-8")
        return changed[::-1]

    def _lines(self) -> list[tuple[str, str]]:
        text = self._names.read_text(encoding="utf-8") if self._names.exists() else ""
        return [(number, cell) for number, _, cell in (line.partition(": ") for line in text.splitlines())]

    def _fault(self, place: _Place, cell: str) -> str:
        """Returns what is wrong with a number and the cell that it names; nothing where it is right."""
        number = place.number
        where = f"{place.title or 'before the first heading'}: {number.text} is said to be {cell}"
        if cell == NO_RECORD:
            return f"{where}, and this page has records" if self._has_records else ""
        if cell.startswith(_GIVEN):
            return "" if cell == _GIVEN + self._given.get(number.text, "") else f"{where}, which is not given"
        if cell.startswith(_DERIVED):
            return "" if cell == _DERIVED + self._derived.get(number.text, "") else f"{where}, which is not derived"
        cells = self._cells_of(place)
        if cell not in cells:
            return f"{where}, which the section's records do not hold"
        return "" if number.is_in([cells[cell]]) else f"{where}, which is {cells[cell]:.6g}"

    def _likeliest(self, place: _Place, before: str) -> str:
        """Returns the cell of a number; `before` is that of the number before it, whose error it may be."""
        number, cells = place.number, self._cells_of(place)
        if number.text in self._given:
            return _GIVEN + self._given[number.text]
        if number.text in self._derived:
            return _DERIVED + self._derived[number.text]
        candidates = [cell for cell, value in cells.items() if number.is_in([value])]
        if not candidates and self._has_records:
            raise FigureError(f"{self.path.name}, {place.title}: no record holds {number.text}")
        its_error = f"{before.removesuffix(' mean')} error"
        if place.is_error and its_error in candidates:
            return its_error
        return place.likeliest(candidates)

    def _cells_of(self, place: _Place) -> Mapping[str, float]:
        return self._sections.get(place.title, self._cells)

    def _check_description(self, text: str) -> None:
        titles, numbers = set(_HEADING.findall(text)), {number.text for _, number in places_of(text)}
        if unknown := self._sections.keys() - titles:
            raise FigureError(f"{self.name}: there is no section {', '.join(sorted(unknown))}")
        if unused := {*self._given, *self._derived} - numbers:
            raise FigureError(f"{self.name}: {', '.join(sorted(unused))} are explained and not on the page")
        for number, expression in self._derived.items():
            self._check_derivation(number, expression, text)

    def _check_derivation(self, number: str, expression: str, text: str) -> None:
        """Raises where a number does not follow from others of the page to the digits printed."""
        stated = re.findall(r"\d[\d,]*\.?\d*", expression)
        absent = [one for one in stated if float(one.replace(",", "")) not in _FREE and not _stands_in(one, text)]
        if absent:
            raise FigureError(f"{self.name}: {number} is said to be {expression}; {', '.join(absent)} is not there")
        value = _evaluated(ast.parse(expression.replace(",", ""), mode="eval").body)
        if not Printed(number).is_in([abs(value)]):
            raise FigureError(f"{self.name}: {number} is said to be {expression}, which is {value:.4g}")


def _places(text: str) -> list[_Place]:
    """Returns the numbers of a page in order."""
    headings = [(0, ""), *((found.start(), found[1]) for found in _HEADING.finditer(text))]
    begins = [begin for begin, _ in headings]
    return [_Place(n, headings[bisect_right(begins, start) - 1][1], text, start) for start, n in places_of(text)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{2,}|\d+", re.sub(r"(?<=\d),(?=\d)", "", text.lower())))


def _stands_in(number: str, text: str) -> bool:
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|\.\d)", text) is not None


def _evaluated(node: ast.expr) -> float:
    """Returns the value of a sum, difference, product or quotient of constants."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    raise FigureError(f"{ast.unparse(node)} is no sum, difference, product or quotient of numbers")


def load_traced(root: Path) -> list[TracedPage]:
    """Returns the traced pages of a project by path: the README, and all of ``docs`` that is written by hand."""
    described = [TracedPage.described(file, root) for file in (root / "figures" / "traced").glob("*.toml")]
    paths = {page.path for page in described}
    plain = [TracedPage(path, root) for path in _written_by_hand(root) if path not in paths]
    return sorted([*described, *plain], key=lambda page: page.path)


def _written_by_hand(root: Path) -> Iterator[Path]:
    folders = ("", "docs/", "docs/results/", "docs/howto/", "docs/extensions/")
    found = [path for folder in folders for path in root.glob(f"{folder}*.md" if folder else "README.md")]
    yield from (path for path in found if path.relative_to(root).as_posix() not in _UNTRACED)
