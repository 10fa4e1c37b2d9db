"""The paper's experiments by name: which cells they have, what they compare, how many seeds they take.

They are data: ``experiments.toml`` beside this file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from cndpm.names import UnknownNameError
from cndpm.paper.experiment import Cell, Experiment, Published

__all__ = ["EXPERIMENTS", "find_experiment"]


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
