"""The runs of the paper's tables that no record holds, and what each costs by the records of its relatives.

A relative is a run of the same learner on the same stream on a GPU; its seconds are scaled by the lengths of the two
streams. iid-online takes the steps of fine-tuning. CN-DPM sleeps once for an expert however long a stage is, so a
longer stream of it costs less than its estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from cndpm.paper.experiment import Cell
from cndpm.paper.reproduction import cell_folder
from figures.paper import recorded_runs, table_experiments
from figures.records import Row, replaced

__all__ = ["MissingRuns", "MissingTable", "missing_runs"]

N_SEEDS = 3
"""Runs that a cell should have."""
_STEPS_OF = {"iid-online": "finetune"}
"""Learners that cost what another does, where they have no run of their own."""


@dataclass(frozen=True)
class MissingRuns:
    """The runs that one cell lacks.

    Attributes:
        cell: Of the paper's tables.
        name: Where `cndpm reproduce` keeps its runs.
        seeds: That no record holds, of the first three.
        n_numbers: Numbers of the paper's tables that rest on the cell.
        seconds: Of a run on an H200 beside others; None where no relative was measured.

    Example:
        >>> cell = Cell("Fine-tune", "Fuzzy Split-MNIST", "fuzzy-split-mnist", "finetune")
        >>> MissingRuns(cell, "fuzzy-split-mnist/finetune-paper", (1, 2), 1, 3.3).total
        6.6
    """

    cell: Cell
    name: str
    seeds: tuple[int, ...]
    n_numbers: int
    seconds: float | None

    @property
    def total(self) -> float | None:
        """Seconds of all its runs together."""
        return None if self.seconds is None else self.seconds * len(self.seeds)


def missing_runs(root: Path) -> list[MissingRuns]:
    """Returns what the records lack, the cheapest first and what was never measured last.

    Args:
        root: The project.
    """
    cells, numbers = _distinct_cells()
    recorded = recorded_runs(root / "docs" / "results" / "records")
    found = []
    for name, cell in cells.items():
        seeds = tuple(set(range(N_SEEDS)) - {run["seed"] for run in recorded.get(name, [])})
        if seeds:
            found.append(MissingRuns(cell, name, seeds, numbers[name], _estimate(cell, cells, recorded)))
    return sorted(found, key=lambda one: (one.total is None, one.total, one.name))


def _distinct_cells() -> tuple[dict[str, Cell], dict[str, int]]:
    """Returns the cells of the tables by name, and how many published numbers each gives, parameters apart."""
    cells: dict[str, Cell] = {}
    numbers: dict[str, int] = {}
    for cell in (cell for experiment in table_experiments() for cell in experiment.cells):
        name = str(cell_folder(cell, "paper"))
        cells.setdefault(name, cell)
        numbers[name] = numbers.get(name, 0) + len(cell.published.keys() - {"n_parameters"})
    return cells, numbers


def _estimate(cell: Cell, cells: Mapping[str, Cell], recorded: Mapping[str, Sequence[Row]]) -> float | None:
    learners = [cell.learner, *([_STEPS_OF[cell.learner]] if cell.learner in _STEPS_OF else [])]
    for learner in learners:
        if seconds := list(_scaled_seconds(cell, learner, cells, recorded)):
            return median(seconds)
    return None


def _scaled_seconds(
    cell: Cell, learner: str, cells: Mapping[str, Cell], recorded: Mapping[str, Sequence[Row]]
) -> Iterator[float]:
    """Yields the seconds of every relative, scaled to the length of the cell's stream."""
    for name, runs in recorded.items():
        other = cells[name]
        if other.learner == learner and _stream(other) == _stream(cell):
            scale = 1.0 if learner == "iid-offline" else _length(cell) / _length(other)
            yield from (run["seconds"] * scale for run in runs if "H200" in run["machine"])


def _stream(cell: Cell) -> str:
    return cell.scenario.removeprefix("iid-")


def _length(cell: Cell) -> float:
    """Returns the number of batches in batches of one epoch of tens."""
    options = cell.options
    epochs = options.get("epochs", 1) * options.get("repeats", 1) * options.get("fraction", 1.0)
    return float(epochs * 10 / options.get("batch_size", 10))


class MissingTable:
    """The lines about missing runs on the page of the paper's tables.

    Args:
        root: The project.

    Attributes:
        name: Of the table.
        path: The page.
    """

    name = "missing"

    def __init__(self, root: Path) -> None:
        self.path, self._root = root / "docs" / "results" / "paper.md", root

    def table(self) -> str:
        """Returns how many numbers have runs, and what the missing ones would cost."""
        missing = missing_runs(self._root)
        known = sum(one.total or 0 for one in missing)
        unknown = sum(one.total is None for one in missing)
        return (
            f"{self._counts()} {sum(len(one.seeds) for one in missing)} runs of {len(missing)} cells are missing: "
            f"{known / 3600:.0f} hours one after the other, and {unknown} cells whose cost was never measured."
        )

    def _counts(self) -> str:
        """Says how many of the paper's numbers have runs."""
        recorded, numbers = recorded_runs(self._root / "docs" / "results" / "records"), _distinct_cells()[1]
        some, three = (sum(n for name, n in numbers.items() if len(recorded.get(name, [])) >= k) for k in (1, N_SEEDS))
        return (
            f"The paper's tables print {sum(numbers.values())} numbers, parameters apart, of {len(numbers)} different "
            f"cells. {some} of them have a run here, {three} three or more."
        )

    def written(self) -> str:
        """Returns the page with its table written anew."""
        return replaced(self.path, self.name, self.table())
