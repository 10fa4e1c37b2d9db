"""Traces the numbers of hand-written pages: each must stand in a record that is named for its section.

Numbers are those with a decimal point or a unit (%, s, ms, MiB, M and the like), outside of code and of the tables that
``figures`` writes itself. A description ``figures/traced/NAME.toml`` says where they come from:

    page = "docs/results/drift.md"
    sources = ["evidence.json"]                  # of all sections but those below; see figures.sources

    [sections]
    "The streams" = [{ record = "drift.json", inside = ["models"] }]

    [given]                                      # settings, thresholds and limits, each with what it is
    "0.9" = "a threshold of pruning"

    [derived]                                    # follow from other numbers of the page
    "0.4" = "81.10 - 80.72"

A number stands in a source if a value of it rounds to what is printed; behind a number, M and K are millions and
thousands, and GiB may be 1,024 MiB. A number that none holds is an error.
"""

from __future__ import annotations

import ast
import operator
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from figures.records import FigureError
from figures.sources import numbers_of

__all__ = ["TracedPage", "load_traced"]

_HEADING = re.compile(r"^(?=#+ )", re.MULTILINE)
_WRITTEN = re.compile(r"<!-- figures: .*?<!-- end -->", re.DOTALL)
_CODE = re.compile(r"^```[\s\S]*?^```|^ {4,}\S.*$|`[^`\n]*`|\]\([^)]*\)|(?:torch|Python) \d+\.\d+", re.MULTILINE)
_UNITS = r"[MK]\b| ?%| (?:per cent|s|ms|seconds|microseconds|KiB|MiB|GiB)\b"
_NUMBER = re.compile(rf"(?<![\w.,])(\d[\d,]*\.\d+|\d[\d,]*(?={_UNITS}))(?![\w.]*\.\d)(M|K| GiB)?")
_SCALES = {"M": (1e-6,), "K": (1e-3,), " GiB": (1.0, 1 / 1024), "": (1.0,)}
Scales = tuple[float, ...]
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
            lost = [
                number for number, scales in numbers if not _is_in(number, scales, values) and number not in self._told
            ]
            if lost:
                lines.append(f"{title or 'before the first heading'}: no record holds {', '.join(lost)}")
        return lines

    def chances(self) -> list[float]:
        """Returns, for every number that a record holds, the share of numbers of its form that one would hold too.

        A number of the same form has as many digits before and behind the point, and the same first digit.
        """
        found = []
        for _, numbers, values in self._parts():
            found += [_chance(number, scales, values) for number, scales in numbers if number not in self._told]
        return found

    @property
    def _told(self) -> set[str]:
        return {*self._given, *self._derived}

    def _parts(self) -> Iterator[tuple[str, list[tuple[str, Scales]], Sequence[float]]]:
        """Yields the title, the numbers with their scales and the known values of every section."""
        for section in _HEADING.split(self.path.read_text(encoding="utf-8")):
            title = section.partition("\n")[0].lstrip("# ") if section.startswith("#") else ""
            yield title, _numbers(section), self._sections.get(title, self._values)

    def _check_description(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        titles = {title for title, _, _ in self._parts()}
        numbers = {number for number, _ in _numbers(text)}
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
        if abs(abs(value) - _value(number)) > _half(number) * (1 + 1e-6):
            raise FigureError(f"{self.name}: {number} is said to be {expression}, which is {value:.4g}")


def _numbers(text: str) -> list[tuple[str, Scales]]:
    """Returns the numbers with a decimal point or a unit outside of code and tables, each once, and their scales."""
    found = _NUMBER.findall(_CODE.sub(" ", _WRITTEN.sub(" ", text)))
    return list(dict.fromkeys((number, _SCALES[unit]) for number, unit in found))


def _stands_in(number: str, text: str) -> bool:
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|\.\d)", text) is not None


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _half(number: str) -> float:
    """Returns half a unit of the last digit printed."""
    return float(0.5 * 10 ** -len(number.partition(".")[2]))


def _is_in(number: str, scales: Scales, values: Sequence[float]) -> bool:
    """Returns whether one of some sorted values is printed as a number."""
    wanted, half = _value(number), _half(number) * (1 + 1e-6)
    return any(bisect_left(values, (wanted - half) / s) < bisect_right(values, (wanted + half) / s) for s in scales)


def _chance(number: str, scales: Scales, values: Sequence[float]) -> float:
    """Returns the share of numbers with as many digits and the same first one that some values are printed as."""
    whole, _, decimals = number.replace(",", "").partition(".")
    width = 10.0 ** (len(whole) - 1)
    low, unit = int(whole[0]) * width, 10.0 ** -len(decimals)
    printed = {round(s * value / unit) for s in scales for value in values if low <= s * value < low + width}
    return len(printed) * unit / width


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
