"""Settings by name: "paper" is what the paper's results need, "default" is ours, "fast" trains its networks faster.

They are data: ``presets.toml`` beside this file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Literal

from cndpm.experiments.learners import LEARNERS
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError

Settings = dict[str, Any]

_OTHERS = "*"  # every scenario that is not listed
_REPLAYING = ("reservoir", "gss", "a-gem", "mir", "der", "der++", "er-ace", "scr", "gdumb")
_COLOUR = {"split-cifar10": "colour-replay", "split-cifar100": "colour-replay", _OTHERS: "own"}


def _presets() -> dict[str, dict[str, dict[str, Settings]]]:
    """Reads the presets; one that is told of tasks has the settings of cndpm: that changes who learns what, not how."""
    tables = tomllib.loads(files("cndpm.experiments").joinpath("presets.toml").read_text(encoding="utf-8"))
    known = tables.pop("settings")

    def settings(name: str) -> Settings:
        own = dict(known[name])
        return (settings(base) if (base := own.pop("base", None)) else {}) | own

    tables["default"] |= dict.fromkeys(_REPLAYING, _COLOUR)
    made = {
        preset: {learner: {one: settings(name) for one, name in names.items()} for learner, names in learners.items()}
        for preset, learners in tables.items()
    }
    for learners in made.values():
        told = learners.get("cndpm-tasks") or learners["cndpm"]
        learners["cndpm-tasks"] = {
            one: {key: value for key, value in its.items() if key != "log_alpha"} | {"novelty": "tasks"}
            for one, its in told.items()
        }
    return made


PRESETS: Mapping[str, Mapping[str, Mapping[str, Settings]]] = _presets()
"""Preset, learner, scenario to settings. A learner that a preset does not list is used with its own defaults."""

Target = Literal["classes", "values", "none"]

_MIXTURES = ("cndpm", "cndpm-tasks")
"""Learners that take targets of every kind."""


def preset_settings(preset: str, learner: str, scenario: str, *, target: Target = "classes") -> Settings:
    """Returns the overrides of a preset for a learner on a scenario.

    ConfigError: the preset lists this learner, but not for this scenario; or the learner knows classes only.
    """
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS)
    if target == "values" and learner in LEARNERS and learner not in _MIXTURES:
        raise ConfigError(
            f"{learner} predicts classes, and {scenario} has real-valued targets. Use {' or '.join(_MIXTURES)}."
        )
    always: Settings = {"target": target} if learner in _MIXTURES and target != "classes" else {}
    by_scenario = PRESETS[preset].get(learner)
    if by_scenario is None:
        return always
    # A variation such as gradual-split-mnist takes the settings of what it varies.
    base = next((name for name in by_scenario if scenario == name or scenario.endswith(f"-{name}")), _OTHERS)
    if base not in by_scenario:
        raise ConfigError(
            f"the preset {preset!r} has no settings of {learner} for {scenario}; it has them for "
            f"{', '.join(sorted(by_scenario))}. Use the preset 'default', or give settings by --set."
        )
    return always | by_scenario[base]
