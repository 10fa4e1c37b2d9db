"""The numbers that a page or a section may show: those of rows of records, and what the paper published.

A source is one of

    "drift.json"                                                    every number of a record
    { record = "drift.json", inside = ["results"], where = { model = "cndpm" }, fields = ["accuracy"] }
    "paper: table1"                                                 the published values of one experiment

`inside`, `where` and `unlike` choose rows as in :mod:`figures.pages`, `fields` their numbers (all that lie below a
field). Means and standard errors are taken over rows that differ by seed and figures only; with ``pooled = true`` over
all rows that are meant. The narrower a source, the rarer a number is found in it by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cndpm.paper import EXPERIMENTS
from figures.records import FigureError, Row, read_rows, select

__all__ = ["Source", "numbers_of", "published"]

Source = str | Mapping[str, Any]

_PAPER = "paper: "
_KEYS = {"record", "inside", "where", "unlike", "fields", "pooled"}
_VARIED = (
    "n_patches",
    "class_order",
    "settings",
    "given",
    "epochs",
    "repeats",
    "fraction",
    "validation",
    "views",
    "log_alpha",
)
"""Fields beside words that tell rows apart; rows that agree in all of them differ by their seeds."""

_NO_FIGURES = {"seed", "seeds", "runs"}


def numbers_of(folder: Path, sources: Iterable[Source]) -> list[float]:
    """Returns the numbers of some sources, without their signs, in order.

    Args:
        folder: Of the records.
        sources: See above.

    Raises:
        FigureError: A source has no rows, no such field, or keys that mean nothing.
    """
    return sorted({abs(number) for source in sources for number in _numbers(folder, source)})


def _numbers(folder: Path, source: Source) -> Iterator[float]:
    if isinstance(source, str) and source.startswith(_PAPER):
        yield from published(source.removeprefix(_PAPER))
        return
    asked: Mapping[str, Any] = {"record": source} if isinstance(source, str) else source
    if unknown := asked.keys() - _KEYS:
        raise FigureError(
            f"{source}: {', '.join(sorted(unknown))} mean nothing; allowed are {', '.join(sorted(_KEYS))}"
        )
    rows = select(read_rows(folder / asked["record"], asked.get("inside", ())), asked)
    if not rows:
        raise FigureError(f"{source} has no rows: change what is asked for")
    if missing := [name for name in asked.get("fields", ()) if not any(name in row for row in rows)]:
        raise FigureError(f"no row of {source} has {', '.join(missing)}")
    parts = [{name: row[name] for name in _fields(row, asked) if name in row} for row in rows]
    yield from _leaves(parts)
    groups = [parts] if asked.get("pooled") else _alike(rows, parts)
    yield from (number for group in groups for number in _over_rows(group))


def _fields(row: Row, asked: Mapping[str, Any]) -> Sequence[str]:
    return asked.get("fields") or [name for name in row if name not in _NO_FIGURES]


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


def _alike(rows: Sequence[Row], parts: Sequence[Row]) -> Iterator[list[Row]]:
    """Groups the chosen fields of rows that differ by seed and figures only; by commit too where seeds repeat."""
    pairs = list(zip(rows, parts, strict=True))
    for group in _grouped(pairs, ("command", "commit")):
        seeds = [row.get("seed") for row, _ in group]
        for alike in [group] if len(set(seeds)) == len(seeds) else _grouped(group, ("command",)):
            yield [part for _, part in alike]


def _grouped(pairs: Sequence[tuple[Row, Row]], unlike: Sequence[str]) -> Iterable[list[tuple[Row, Row]]]:
    """Groups rows, each with its chosen fields, that agree in all words but some, and in what is varied."""
    groups: dict[str, list[tuple[Row, Row]]] = {}
    for row, part in pairs:
        alike = {name: value for name, value in row.items() if isinstance(value, str) and name not in unlike}
        alike |= {name: row.get(name) for name in _VARIED}
        groups.setdefault(repr(sorted(alike.items(), key=lambda item: item[0])), []).append((row, part))
    return groups.values()


def _over_rows(group: Sequence[Row]) -> Iterator[float]:
    """Yields the mean and the standard error of every number over some rows; of lists by position."""
    for name in {name for row in group for name in row}:
        found = [row[name] if isinstance(row[name], list) else [row[name]] for row in group if name in row]
        if len(found) < 2 or len({len(values) for values in found}) > 1:
            continue
        for values in zip(*found, strict=True):
            if all(isinstance(value, int | float) for value in values):
                yield mean(values)
                yield stdev(values) / math.sqrt(len(values))


def published(experiment: str) -> Iterator[float]:
    """Yields the values that the paper published for an experiment, and their standard errors.

    Args:
        experiment: Its name.

    Raises:
        FigureError: There is no such experiment.
    """
    if experiment not in EXPERIMENTS:
        raise FigureError(f"there is no experiment {experiment!r}; there are {', '.join(EXPERIMENTS)}")
    for cell in EXPERIMENTS[experiment].cells:
        for value in cell.published.values():
            yield round(value.value, 9)
            yield round(value.error or 0.0, 9)
