"""Rows of records, one for every run, and the figures that are made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any

__all__ = ["Figure", "FigureError", "Row", "commits_of", "read_rows", "replaced", "select"]

Row = dict[str, Any]

_WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
)


class FigureError(ValueError):
    """Raised for a figure that does not follow from the records; the message says which and why."""


def read_rows(path: Path, inside: Sequence[str] = ()) -> list[Row]:
    """Reads a record: one row for every run, with the fields of the result around it.

    Args:
        path: A ``.json`` file, or a ``.jsonl`` file with one result a line.
        inside: Names and positions that lead to the part that is meant.
    """
    found = _parsed(path, path.stat().st_mtime_ns)
    for step in inside:
        found = found[int(step)] if isinstance(found, list) else found[step]
    return [row for result in (found if isinstance(found, list) else [found]) for row in _runs(result)]


@lru_cache(maxsize=64)
def _parsed(path: Path, _: int) -> Any:
    """Returns what a file holds, read once as long as it does not change; a table asks for it a hundred times."""
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def _runs(result: Row) -> Iterator[Row]:
    around = {name: value for name, value in result.items() if name not in ("runs", "scores")}
    if "scores" in result:  # of folds, which are as good as seeds
        yield from ({**around, "seed": fold, "score": score} for fold, score in enumerate(result["scores"]))
    else:
        yield from ({**around, **run} for run in result["runs"]) if "runs" in result else (around,)


def select(rows: Sequence[Row], asked: Mapping[str, Any], **more: str) -> list[Row]:
    """Returns the rows that have the values of `where` and none of those of `unlike`.

    Args:
        rows: Of a record.
        asked: May have `where` and `unlike`, values by field; "none" stands for a field that is empty or missing.
        **more: Further values that rows must have.
    """
    return [row for row in rows if _is_meant(row, {**asked.get("where", {}), **more}, asked.get("unlike", {}))]


def commits_of(folder: Path, entry: Mapping[str, Any]) -> list[str]:
    """Returns the commits that the rows of a figure were measured at, each once, in the order of the rows.

    Args:
        folder: Of the records.
        entry: Definition of a figure; see :mod:`figures.pages`.
    """
    found: list[str] = []
    for source in entry.get("from") or [entry]:
        path = folder / source["record"]
        meant = select(read_rows(path, source.get("inside", ())), source)
        found += _commits(meant) or _commits(read_rows(path))  # a part of a record need not repeat what is about it
    return list(dict.fromkeys(found))


def _commits(rows: Sequence[Row]) -> list[str]:
    told = [row.get("commit") or row.get("environment", {}).get("commit") for row in rows]
    return [commit[:7] for commit in told if commit]


def replaced(page: Path, name: str, table: str) -> str:
    """Returns the text of a page with another table between its marks.

    Args:
        page: Has ``<!-- figures: NAME -->`` and ``<!-- end -->``.
        name: Of the table.
        table: Stands there instead.

    Raises:
        FigureError: The page has no such marks.
    """
    begin, end = f"<!-- figures: {name} -->\n", "<!-- end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ends, after = rest.partition(end)
    if not found or not ends:
        raise FigureError(f"{page} has no {begin.strip()} ... {end}")
    return f"{before}{begin}\n{table}\n\n{end}{after}"


def _text_of(value: Any) -> Any:
    """Returns a whole number as a table names it; other values as they are."""
    return str(value) if type(value) is int else value


def _is_meant(row: Row, where: Mapping[str, Any], unlike: Mapping[str, Any]) -> bool:
    """Returns whether a row has some values and none of others; "none" stands for a field that is empty or missing."""
    alike = all(
        (None if value == "none" else value) in (row.get(key), _text_of(row.get(key))) for key, value in where.items()
    )
    return alike and not any(row.get(key) == value for key, value in unlike.items())


@dataclass(frozen=True)
class Figure:
    """A figure of a table.

    Attributes:
        name: What templates call it.
        values: One for every row, in the order of the seeds.
        seeds: Of the rows; None where rows differ by more than seeds.
        decimals: Of the text.
        scale: The values are multiplied by it.
        unit: Stands behind the text.
        form: "seeds" shows one or two seeds as they are and more as mean and standard error, "error" already two;
            "mean" shows the mean; "range" the least and the most; "sum" adds the parts of one measurement up.

    Example:
        >>> Figure("accuracy", (93.0, 94.0, 95.0), (0, 1, 2)).text
        '94.00 ± 0.58'
    """

    name: str
    values: tuple[float, ...]
    seeds: tuple[int, ...] | None
    decimals: int = 2
    scale: float = 1.0
    unit: str = ""
    form: str = "seeds"

    @property
    def text(self) -> str:
        """The figure as it is printed."""
        values = [self.scale * value for value in self.values]
        if self.form in ("mean", "sum"):
            return self._shown(mean(values) if self.form == "mean" else sum(values))
        if self.form == "range":
            return " to ".join(dict.fromkeys(map(self._shown, (min(values), max(values)))))
        if len(values) < (2 if self.form == "error" else 3):
            return ", ".join(map(self._shown, values))
        return f"{self._shown(mean(values))} ± {self._shown(stdev(values) / math.sqrt(len(values)))}"

    @classmethod
    def gain(cls, name: str, folder: Path, entry: Mapping[str, Any], other: Mapping[str, Any]) -> Figure:
        """Makes a figure of what rows gain over others, each over the one of its seed and of its field `by`.

        Rows of one `by` are alike, so each is one value, the mean of its seeds: its error is that of another `by`.

        Args:
            name: Of the figure.
            folder: Of the records.
            entry: Definition of a figure; see :mod:`figures.pages`.
            other: Of another, with the same `by`.

        Raises:
            FigureError: A row of either has no partner, or two.
        """
        mine, theirs = ([row for row, _ in _values(name, folder, one, {})] for one in (entry, other))
        keys = [[(row.get(entry.get("by", "seed")), row.get("seed", 0)) for row in rows] for rows in (mine, theirs)]
        if sorted(keys[0]) != sorted(keys[1]) or len(set(keys[0])) < len(keys[0]):
            raise FigureError(f"{name}: rows have no partners: {keys[0][:3]} and {keys[1][:3]}")
        before = dict(zip(keys[1], theirs, strict=True))
        gains = [row[entry["value"]] - before[key][other["value"]] for key, row in zip(keys[0], mine, strict=True)]
        return cls(name, _means([group for group, _ in keys[0]], gains), None, form="error")

    @property
    def n_seeds(self) -> str:
        """How many seeds, in words; runs, where seeds may come twice."""
        n, what = len(self.values), "seed" if self.seeds is not None else "run"
        return f"{_WORDS[n] if n < len(_WORDS) else n} {what}{'s' if n != 1 else ''}"

    def _shown(self, value: float) -> str:
        return f"{value:,.{self.decimals}f}{self.unit}"

    @classmethod
    def of(cls, name: str, folder: Path, entry: Mapping[str, Any], asked: Mapping[str, str]) -> Figure:
        """Makes a figure of the rows that its entry names; where it has `against`, of what they differ by from others.

        Args:
            name: Of the figure.
            folder: Of the records.
            entry: Its definition; see :mod:`figures.pages`.
            asked: Further fields that rows must have.

        Raises:
            FigureError: There is no such row, a row lacks the value, or two have the same seed.
        """
        plain = {key: entry[key] for key in ("record", "inside", "where", "unlike") if key in entry}
        values = _by_seed(name, folder, entry, entry.get("from") or [plain], asked)
        if "against" in entry:
            others = _by_seed(name, folder, entry, [entry["against"]], asked)
            values = [(seed, abs(value - dict(others)[seed])) for seed, value in values if seed in dict(others)]
        if not values:
            raise FigureError(f"{name}: no seed of {plain} is one of {entry.get('against')}")
        options = {key: entry[key] for key in ("decimals", "scale", "unit", "form") if key in entry}
        if "each" in entry:
            rows = _values(name, folder, entry, asked)
            groups, gained = [row[entry["each"]] for row, _ in rows], [value for _, value in rows]
            return cls(name, _means(groups, gained), None, **options)
        seeds = tuple(seed for seed, _ in values)
        alone = len(set(seeds)) == len(seeds)
        return cls(name, tuple(value for _, value in values), seeds if alone else None, **options)


def _means(groups: Sequence[Any], values: Sequence[float]) -> tuple[float, ...]:
    """Returns the mean value of each group, in order of appearance."""
    by_group: dict[Any, list[float]] = {}
    for group, value in zip(groups, values, strict=True):
        by_group.setdefault(group, []).append(value)
    return tuple(map(mean, by_group.values()))


def _by_seed(
    name: str, folder: Path, entry: Mapping[str, Any], sources: Sequence[Mapping[str, Any]], asked: Mapping[str, str]
) -> list[tuple[int, float]]:
    """Returns seed and value of every row that some sources name, in the order of the seeds."""
    found = _values(name, folder, {**entry, "from": sources}, asked)
    seeds = tuple(row.get("seed", 0) for row, _ in found)
    if len(set(seeds)) < len(seeds) and not entry.get("pooled"):
        raise FigureError(f"{name}: {len(found)} rows of {sources} with {asked} have seeds {seeds}; name one of each")
    return [(seed, value) for seed, (_, value) in zip(seeds, found, strict=True)]


def _values(name: str, folder: Path, entry: Mapping[str, Any], asked: Mapping[str, str]) -> list[tuple[Row, float]]:
    """Returns every row that an entry names, and its value, in the order of the seeds."""
    sources = entry.get("from") or [entry]
    rows = [
        row
        for source in sources
        for row in select(read_rows(folder / source["record"], source.get("inside", ())), source, **asked)
    ]
    if not rows or any(not isinstance(row.get(entry["value"]), int | float) for row in rows):
        raise FigureError(f"{name}: no row of {sources} with {asked} has {entry['value']}")
    rows.sort(key=lambda row: row.get("seed", 0))
    return [(row, float(row[entry["value"]])) for row in rows]
