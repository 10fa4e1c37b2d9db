"""The paper's tables on ``docs/results/paper.md``, written from the records.

A row of a record belongs to a cell of the paper's tables by its field `cell`, the folder in which `cndpm reproduce`
would keep the run. Every run in the settings of a cell counts, whichever command made it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from cndpm.paper import EXPERIMENTS
from cndpm.paper.experiment import Cell, Experiment
from cndpm.paper.reproduction import cell_config, cell_folder
from cndpm.reports.formats import markdown_table
from cndpm.reports.groups import matches
from cndpm.reports.tables import reproduction_table
from figures.records import Row, replaced

__all__ = ["PaperTable", "cell_of", "load_paper_tables", "recorded_runs", "table_experiments"]

_NO_TABLES = ("samples", "pruning", "graphs")
"""Experiments that are figures in the paper."""
_WITHOUT_RUNS = ("longer-cifar10", "longer-cifar100")
"""Tables of which no cell has a run but those that are in another table too."""


class PaperTable:
    """A table of the paper, ours beside its values, each a link to the record that holds it.

    Args:
        experiment: Of the paper; its name is that of the table.
        root: The project.

    Attributes:
        name: Of the table.
        path: The page.

    Example:
        >>> table = PaperTable(EXPERIMENTS["fuzzy"], Path())
        >>> table.table().splitlines()[0]
        '| learner | runs | accuracy (%) | paper | difference |'
    """

    def __init__(self, experiment: Experiment, root: Path) -> None:
        self.name, self.path = experiment.name, root / "docs" / "results" / "paper.md"
        self._experiment, self._records = experiment, root / "docs" / "results" / "records"

    def table(self) -> str:
        """Returns the table with the figures of the records; columns without any run are left out."""
        several = len({cell.column for cell in self._experiment.cells}) > 1
        metrics = [m for m in self._experiment.metrics if not several or m != "n_parameters" or m == self._only]
        cells = [self._summary(cell) for cell in self._experiment.cells]
        seen = {cell["column"] for cell in cells if cell["runs"]}
        cells = [cell for cell in cells if cell["column"] in seen]
        return markdown_table(reproduction_table({"title": "", "metrics": metrics, "cells": cells}))

    @property
    def _only(self) -> str | None:
        """The metric of a table that has one."""
        return self._experiment.metrics[0] if len(self._experiment.metrics) == 1 else None

    def written(self) -> str:
        """Returns the page with its table written anew."""
        return replaced(self.path, self.name, self.table())

    def _summary(self, cell: Cell) -> dict[str, Any]:
        """Returns what `cndpm reproduce` would say of a cell."""
        published = {metric: asdict(value) for metric, value in cell.published.items()}
        runs = recorded_runs(self._records).get(str(cell_folder(cell, "paper")), [])
        return {
            "label": cell.label,
            "column": cell.column,
            "learner": cell.learner,
            "runs": runs,
            "published": published,
        }


def recorded_runs(records: Path) -> dict[str, list[Row]]:
    """Returns the rows of all records by the cell that they name, each with the address of its record as `source`.

    Args:
        records: The folder of the records.
    """
    return _runs_of(tuple((file, file.stat().st_mtime_ns) for file in sorted(records.iterdir())))


@lru_cache(maxsize=2)
def _runs_of(files: tuple[tuple[Path, int], ...]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for file, _ in files:
        text = file.read_text(encoding="utf-8")
        parsed = [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else json.loads(text)
        for row in _with_cell(parsed, {}):
            found.setdefault(row["cell"], []).append(row | {"source": f"records/{file.name}"})
    return found


def _with_cell(node: Any, facts: Row) -> Iterator[Row]:
    """Yields the runs of every result that names its cell, however deep it lies, with the facts told above it."""
    if isinstance(node, list):
        for inner in node:
            yield from _with_cell(inner, facts)
    elif isinstance(node, dict):
        known = facts | {name: node[name] for name in ("command", "commit", "machine") if name in node}
        if "cell" in node:
            around = known | {name: value for name, value in node.items() if name != "runs"}
            yield from (around | run for run in node.get("runs", [{}]))
        else:
            for inner in node.values():
                yield from _with_cell(inner, known)


def table_experiments() -> list[Experiment]:
    """Returns the experiments that are tables in the paper, in its order."""
    return [experiment for name, experiment in EXPERIMENTS.items() if name not in _NO_TABLES]


def load_paper_tables(root: Path) -> Sequence[PaperTable]:
    """Returns the tables of the paper that are on the page, in its order."""
    return [PaperTable(one, root) for one in table_experiments() if one.name not in _WITHOUT_RUNS]


def cell_of(config: Mapping[str, Any]) -> str | None:
    """Returns the name of the cell of the paper's tables that a configuration runs; None where it is none of them.

    Args:
        config: A resolved configuration, as plain values.
    """
    for cell in (cell for experiment in table_experiments() for cell in experiment.cells):
        alike = (cell.scenario, cell.learner) == (config["scenario"]["name"], config["learner"])
        if alike and matches(config, cell_config(cell, "paper", "cpu").to_json()):
            return str(cell_folder(cell, "paper"))
    return None
