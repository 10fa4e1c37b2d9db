"""Finds what the paper reports for a configuration, by resolving the paper's experiments and comparing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cndpm.experiments.recorder import differing_keys
from cndpm.names import UnknownNameError
from cndpm.paper.experiment import Published
from cndpm.paper.paper import EXPERIMENTS
from cndpm.paper.reproduce import cell_config
from cndpm.validation import ConfigError

__all__ = ["matches", "published_values"]

_IGNORED = ("seed", "device", "run")


def matches(config: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two configurations learn the same, whatever their seed, device and schedule of evaluations."""
    return not differing_keys(_essence(config), _essence(other))


def published_values(config: Mapping[str, Any]) -> dict[str, Published]:
    """By metric, what the paper reports for this learner on this stream; of several experiments all that they give.

    A preset of one's own stands beside the paper's value as well: cells are resolved with the preset of `config`.
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
