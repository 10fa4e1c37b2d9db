"""Experiments: cells of a table, each a learner on a scenario, and the published values beside them.

Cells of different experiments that are the same run share it on disk, so nothing is learned twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Cell", "Experiment"]


@dataclass(frozen=True)
class Published:
    """A value of the paper and its standard error over ten runs, where given."""

    value: float
    error: float | None = None


@dataclass(frozen=True)
class Cell:
    """One learner on one scenario.

    Attributes:
        label: The row of the table, as the paper prints it.
        column: The column of the table.
        scenario: Name of the scenario.
        learner: Name of the learner.
        options: Of the scenario: epochs, repeats, fraction.
        overrides: As for ``--set``.
        published: By metric, what the paper reports.

    Example:
        >>> Cell("CN-DPM", "digits", "split-digits", "cndpm", overrides=("learner.memory_size=50",)).options
        {}
    """

    label: str
    column: str
    scenario: str
    learner: str
    options: Mapping[str, Any] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    published: Mapping[str, Published] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes:
        name: As in ``cndpm reproduce NAME``.
        title: What it shows, in one line.
        cells: The runs.
        metrics: What is compared, keys of a result.
        n_seeds: Runs per cell, as in the paper.
        analysis: What is done with the trained learners beside the table.

    Example:
        >>> cells = tuple(Cell(name, "digits", "split-digits", name) for name in ("cndpm", "slda"))
        >>> Experiment("mine", "Two learners on the digits", cells, n_seeds=3).metrics
        ('accuracy', 'n_parameters')
    """

    name: str
    title: str
    cells: tuple[Cell, ...]
    metrics: tuple[str, ...] = ("accuracy", "n_parameters")
    n_seeds: int = 10
    analysis: Literal["samples", "pruning", "curves"] | None = None
