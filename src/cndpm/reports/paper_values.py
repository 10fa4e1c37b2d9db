"""Finds the paper's values for a configuration, by resolving the paper's experiments and comparing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cndpm.experiments.config import differing_keys
from cndpm.names import UnknownNameError
from cndpm.paper.experiment import Published
from cndpm.paper.paper import EXPERIMENTS
from cndpm.paper.reproduction import cell_config
from cndpm.validation import ConfigError

_IGNORED = ("seed", "device", "run")


def matches(config: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Returns whether two configurations learn the same, apart from seed, device and schedule of evaluations.

    Example:
        >>> matches({"learner": "cndpm", "seed": 0}, {"learner": "cndpm", "seed": 1})
        True
    """
    return not differing_keys(_essence(config), _essence(other))


def published_values(config: Mapping[str, Any]) -> dict[str, Published]:
    """Returns the paper's values for a learner on a stream, by metric, from all of its experiments.

    Cells are resolved with the preset of `config`, so runs with another preset also stand beside the paper's values.
    """
    return dict(_find(json.dumps(_essence(config), sort_keys=True)))


@lru_cache(maxsize=512)
def _find(frozen: str) -> tuple[tuple[str, Published], ...]:
    config = json.loads(frozen)
    found: dict[str, Published] = {}
    for experiment in EXPERIMENTS.values():
        for cell in experiment.cells:
            if (cell.scenario, cell.learner) != (config["scenario"]["name"], config["learner"]):
                continue
            try:
                same = matches(config, cell_config(cell, config["preset"], "cpu").to_json())
            except (ConfigError, UnknownNameError, KeyError):
                continue
            if same:
                found = {**cell.published, **found}
    return tuple(found.items())


def _essence(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _IGNORED}
