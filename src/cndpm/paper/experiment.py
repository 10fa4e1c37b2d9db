"""The paper's experiments: cells of a table, each a learner on a scenario, and the published values beside them.

They are data: ``experiments.toml`` beside this file. Cells of different experiments that are the same run share it on
disk, so nothing is learned twice.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

from cndpm.names import UnknownNameError

__all__ = ["EXPERIMENTS", "Cell", "Experiment", "find_experiment"]

_N_PUBLISHED = 10
"""Runs behind a published value."""
_LEVEL = 0.05
"""A difference is beyond noise where one as large would come by chance less often."""


@dataclass(frozen=True)
class Published:
    """A value of the paper and its standard error over ten runs, where given."""

    value: float
    error: float | None = None

    def differs_from(self, value: float, error: float | None, n: int) -> bool:
        """Says whether a mean over n runs differs by more than noise: Welch's t-test at 5 %.

        Where one side has no standard error, a single run or a table without them, its runs are taken to spread as
        the other's do; where neither has one, nothing can be said and the answer is no.

        Example:
            >>> Published(93.23, 0.09).differs_from(93.42, 0.13, 3), Published(12.68).differs_from(15.44, 0.14, 3)
            (False, True)
        """
        from scipy.special import stdtr  # listing experiments need not wait for it

        noise, freedom = self._noise(error, n)
        return noise > 0 and bool(2 * stdtr(freedom, -abs(value - self.value) / noise) < _LEVEL)

    def _noise(self, error: float | None, n: int) -> tuple[float, float]:
        """Returns the standard error of the difference, 0 where it is unknown, and its degrees of freedom."""
        if error is None:
            return (self.error or 0.0) * math.sqrt(1 + _N_PUBLISHED / n), _N_PUBLISHED - 1
        if self.error is None:
            return error * math.sqrt(1 + n / _N_PUBLISHED), n - 1
        ours, theirs = error**2, self.error**2
        parts = ours**2 / (n - 1) + theirs**2 / (_N_PUBLISHED - 1)
        return math.sqrt(ours + theirs), (ours + theirs) ** 2 / parts if parts else 1.0


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
        analysis: What is added: samples of the first run, or what pruning leaves of the experts.
    """

    name: str
    title: str
    cells: tuple[Cell, ...]
    metrics: tuple[str, ...] = ("accuracy", "n_parameters")
    n_seeds: int = 10
    analysis: Literal["samples", "pruning"] | None = None


def _cell(facts: dict[str, Any]) -> Cell:
    given = {metric: one if isinstance(one, list) else [one] for metric, one in facts.pop("published", {}).items()}
    published = {name: Published(*map(float, one)) for name, one in given.items()}
    return Cell(**facts | {"overrides": tuple(facts.get("overrides", ()))}, published=published)


def _experiments() -> dict[str, Experiment]:
    tables = tomllib.loads(files("cndpm.paper").joinpath("experiments.toml").read_text(encoding="utf-8"))["experiment"]
    made = {}
    for facts in tables:
        cells, metrics = tuple(map(_cell, facts.pop("cells"))), facts.pop("metrics", Experiment.metrics)
        made[facts["name"]] = Experiment(**facts, cells=cells, metrics=tuple(metrics))
    on_five = (*made["table1"].cells, *made["cifar10"].cells)
    made["graphs"] = Experiment(
        "graphs",
        "Training graphs of all learners on five scenarios",
        tuple(cell for cell in on_five if cell.learner != "iid-offline" and not cell.options),
        ("accuracy", "bits_per_dim", "n_parameters"),
    )
    return made


EXPERIMENTS: Mapping[str, Experiment] = _experiments()
"""All experiments of the paper, by name."""


def find_experiment(name: str) -> Experiment:
    """Returns the experiment called `name`."""
    if name not in EXPERIMENTS:
        raise UnknownNameError("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
