"""Traces the numbers of hand-written pages: each must stand in a record that is named for its section.

Numbers are those of :mod:`figures.printed`. A description ``figures/traced/NAME.toml`` says where they come from:

    page = "docs/results/drift.md"
    sources = ["evidence.json"]                  # of all sections but those below; see figures.sources

    [sections]
    "The streams" = [{ record = "drift.json", inside = ["models"] }]

    [given]                                      # settings, thresholds and limits, each with what it is
    "0.9" = "a threshold of pruning"

    [derived]                                    # follow from other numbers of the page
    "0.4" = "81.10 - 80.72"

A number stands in a source if a value of it rounds to what is printed. A number that none holds is an error.
"""

from __future__ import annotations

import ast
import operator
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from figures.printed import Printed, printed_in
from figures.records import FigureError
from figures.sources import numbers_of

__all__ = ["TracedPage", "load_traced"]

_HEADING = re.compile(r"^(?=#+ )", re.MULTILINE)
_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_FREE = {1.0, 100.0}
"""Constants of a derivation that need not stand on the page: shares and per cent."""


class TracedPage:
    """A page whose numbers are looked for in records.

    Args:
        file: The description, ``figures/traced/NAME.toml``.
        root: The project.

    Attributes:
        name: Of the description.
        path: The page.

    Example:
        >>> page = TracedPage(Path("figures/traced/drift.toml"), Path())
        >>> page.missing()
        []
    """

    def __init__(self, file: Path, root: Path) -> None:
        described = tomllib.loads(file.read_text(encoding="utf-8"))
        self.name, self.path = file.stem, root / described["page"]
        self._given: Mapping[str, str] = described.get("given", {})
        self._derived: Mapping[str, str] = described.get("derived", {})
        folder = root / "docs" / "results" / "records"
        self._values = numbers_of(folder, described.get("sources", []))
        self._sections = {name: numbers_of(folder, found) for name, found in described.get("sections", {}).items()}

    def missing(self) -> list[str]:
        """Returns a line for every section with numbers that no record holds.

        Raises:
            FigureError: The description names a section or a number that the page does not have, or a derivation that
                does not follow.
        """
        self._check_description()
        lines = []
        for title, numbers, values in self._parts():
            lost = [number.text for number in numbers if not number.is_in(values)]
            if lost:
                lines.append(f"{title or 'before the first heading'}: no record holds {', '.join(lost)}")
        return lines

    def chances(self) -> list[float]:
        """Returns, for every number that a record holds, the share of numbers of its form that one would hold too.

        A number of the same form has as many digits before and behind the point, and the same first digit.
        """
        return [number.chance(values) for _, numbers, values in self._parts() for number in numbers]

    @property
    def _told(self) -> set[str]:
        return {*self._given, *self._derived}

    def _parts(self) -> Iterator[tuple[str, list[Printed], Sequence[float]]]:
        """Yields the title, the numbers that are not explained and the known values of every section."""
        for section in _HEADING.split(self.path.read_text(encoding="utf-8")):
            title = section.partition("\n")[0].lstrip("# ") if section.startswith("#") else ""
            numbers = [number for number in printed_in(section) if number.text not in self._told]
            yield title, numbers, self._sections.get(title, self._values)

    def _check_description(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        titles = {title for title, _, _ in self._parts()}
        numbers = {number.text for number in printed_in(text)}
        if unknown := self._sections.keys() - titles:
            raise FigureError(f"{self.name}: there is no section {', '.join(sorted(unknown))}")
        if unused := self._told - numbers:
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
    """Returns the traced pages of a project, by name."""
    return [TracedPage(file, root) for file in _descriptions(root)]


def _descriptions(root: Path) -> Iterable[Path]:
    return sorted((root / "figures" / "traced").glob("*.toml"))
