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

__all__ = ["Source", "cells_of", "published", "published_cells"]

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
    "columns",
    "rows",
)
"""Fields beside words that tell rows apart; rows that agree in all of them differ by their seeds."""

_NO_FIGURES = {"seed", "seeds", "runs"}


def cells_of(folder: Path, sources: Iterable[Source]) -> dict[str, float]:
    """Returns the numbers of some sources, without their signs, by their names.

    A name says the record, what tells the row from others of the record, the field, and "mean" or "error" over seeds:
    ``drift.json stream=flip model=cndpm accuracy mean``.

    Args:
        folder: Of the records.
        sources: See above.

    Raises:
        FigureError: A source has no rows, no such field, or keys that mean nothing.
    """
    return {name: abs(number) for source in sources for name, number in _cells(folder, source)}


def _cells(folder: Path, source: Source) -> Iterator[tuple[str, float]]:
    if isinstance(source, str) and source.startswith(_PAPER):
        yield from published_cells(source.removeprefix(_PAPER))
        return
    asked: Mapping[str, Any] = {"record": source} if isinstance(source, str) else source
    if unknown := asked.keys() - _KEYS:
        raise FigureError(
            f"{source}: {', '.join(sorted(unknown))} mean nothing; allowed are {', '.join(sorted(_KEYS))}"
        )
    every = read_rows(folder / asked["record"], asked.get("inside", ()))
    rows = select(every, asked)
    if not rows:
        raise FigureError(f"{source} has no rows: change what is asked for")
    if missing := [name for name in asked.get("fields", ()) if not any(name in row for row in rows)]:
        raise FigureError(f"no row of {source} has {', '.join(missing)}")
    record = "/".join([asked["record"], *asked.get("inside", ())])
    parts = [{name: row[name] for name in _fields(row, asked) if name in row} for row in rows]
    for row, part in zip(rows, parts, strict=True):
        label = " ".join([record, *_told_apart(every, [row])])
        yield from ((f"{label} {field}", number) for field, number in _leaves(part))
    pairs = list(zip(rows, parts, strict=True))
    for group in [pairs] if asked.get("pooled") else _alike(pairs):
        label = " ".join([record, *_told_apart(every, [row for row, _ in group])])
        yield from ((f"{label} {field}", number) for field, number in _over_rows([part for _, part in group]))


def _told_apart(every: Sequence[Row], group: Sequence[Row]) -> list[str]:
    """Returns the fewest fields, each with its value, that tell some rows from the others; else their places."""
    words = [name for name, value in group[0].items() if isinstance(value, str) and name != "command"]
    shared = [n for n in (*words, "seed", *_VARIED) if n in group[0] and all(r.get(n) == group[0][n] for r in group)]
    others, chosen = [row for row in every if not any(row is one for one in group)], []
    while others and shared:
        left = {name: sum(row.get(name) == group[0][name] for row in others) for name in shared}
        best = min(shared, key=left.__getitem__)
        if left[best] == len(others):
            break
        chosen.append(best)
        others = [row for row in others if row.get(best) == group[0][best]]
    places = [str(n) for n, row in enumerate(every) if any(row is one for one in group)] if others else []
    return [f"{name}={group[0][name]}" for name in chosen] + ([f"rows {','.join(places)}"] if places else [])


def _fields(row: Row, asked: Mapping[str, Any]) -> Sequence[str]:
    return asked.get("fields") or [name for name in row if name not in _NO_FIGURES]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yields every number in nested lists and mappings, and where it stands."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int | float):
        if math.isfinite(value):
            yield path, float(value)
        return
    for name, part in value.items() if isinstance(value, Mapping) else enumerate(value):
        yield from _leaves(part, f"{path}.{name}" if path else str(name))


def _alike(pairs: Sequence[tuple[Row, Row]]) -> Iterator[list[tuple[Row, Row]]]:
    """Groups rows that differ by seed and figures only; by commit too where seeds repeat."""
    for group in _grouped(pairs, ("command", "commit")):
        seeds = [row.get("seed") for row, _ in group]
        yield from [group] if len(set(seeds)) == len(seeds) else _grouped(group, ("command",))


def _grouped(pairs: Sequence[tuple[Row, Row]], unlike: Sequence[str]) -> Iterable[list[tuple[Row, Row]]]:
    """Groups rows, each with its chosen fields, that agree in all words but some, and in what is varied."""
    groups: dict[str, list[tuple[Row, Row]]] = {}
    for row, part in pairs:
        words = [name for name, value in row.items() if isinstance(value, str) and name not in unlike]
        alike: Row = {name: row[name] for name in words} | {name: row.get(name) for name in _VARIED}
        groups.setdefault(repr(sorted(alike.items(), key=lambda item: item[0])), []).append((row, part))
    return groups.values()


def _over_rows(group: Sequence[Row]) -> Iterator[tuple[str, float]]:
    """Yields the mean and the standard error of every number over some rows; of lists by position."""
    for name in dict.fromkeys(name for row in group for name in row):
        found = [row[name] if isinstance(row[name], list) else [row[name]] for row in group if name in row]
        if len(found) < 2 or len({len(values) for values in found}) > 1:
            continue
        for place, values in enumerate(zip(*found, strict=True)):
            if all(isinstance(value, int | float) for value in values):
                field = f"{name}.{place}" if len(found[0]) > 1 else name
                yield f"{field} mean", mean(values)
                yield f"{field} error", stdev(values) / math.sqrt(len(values))


def published(experiment: str) -> Iterator[float]:
    """Yields the values that the paper published for an experiment, and their standard errors.

    Args:
        experiment: Its name.

    Raises:
        FigureError: There is no such experiment.
    """
    return (number for _, number in published_cells(experiment))


def published_cells(experiment: str) -> Iterator[tuple[str, float]]:
    """Yields the same by name.

    Args:
        experiment: Its name.

    Raises:
        FigureError: There is no such experiment.
    """
    if experiment not in EXPERIMENTS:
        raise FigureError(f"there is no experiment {experiment!r}; there are {', '.join(EXPERIMENTS)}")
    for cell in EXPERIMENTS[experiment].cells:
        for name, value in cell.published.items():
            label = f"{_PAPER}{experiment} {cell.scenario} {cell.column}, {cell.label}, {name}"
            yield label, round(value.value, 9)
            yield f"{label} error", round(value.error or 0.0, 9)
