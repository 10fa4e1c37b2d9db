"""Settings by name, and as ``--set section.field=value`` changes any of them.

"paper" is what the paper's results need, "default" is ours, "fast" trains its networks faster.
They are data: ``presets.toml`` beside this file.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Literal, TypeVar

from cndpm.experiments.learners import LEARNERS
from cndpm.learner import LearnerSettings
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError, shown, validate

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


Valid = TypeVar("Valid", bound=LearnerSettings)


def parse_overrides(texts: Iterable[str], sections: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Returns for every section the fields to override; dotted fields become nested dictionaries."""
    overrides: dict[str, dict[str, Any]] = {section: {} for section in sections}
    for text in texts:
        path, equals, value = text.partition("=")
        names = [name.strip() for name in path.split(".")]
        if not equals or len(names) < 2 or not all(names):
            raise ConfigError(
                f"an override reads SECTION.FIELD=VALUE, for example learner.memory_size=1000; got {shown(text)}. "
                f"Sections: {', '.join(overrides)}."
            )
        if names[0] not in overrides:
            raise UnknownNameError("section of the configuration called", names[0], overrides)
        target: Any = overrides[names[0]]
        for name in names[1:-1]:
            target = target.setdefault(name, {})
            if not isinstance(target, dict):
                raise ConfigError(
                    f"{shown('.'.join(names))} is a part of a field that another override has set to {shown(target)}; "
                    "give one of the two"
                )
        target[names[-1]] = parse_value(value.strip())
    return overrides


def parse_value(text: str) -> Any:
    """Reads a JSON value where the text is one (numbers, true, null, lists), otherwise the text itself.

    Example:
        >>> parse_value("1e-3"), parse_value("[0, 1]"), parse_value("null"), parse_value("none")
        (0.001, [0, 1], None, 'none')
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ConfigError(f"values are nested a few levels deep at most; got {shown(text)}") from None
    except ValueError:  # no JSON, or a number of thousands of digits
        return {"true": True, "false": False}.get(text.lower(), text)


def validate_changed(model: type[Valid], base: Mapping[str, Any], changes: Mapping[str, Any]) -> Valid:
    """Builds a learner's settings from `base` with `changes`, or raises UnknownNameError or ConfigError."""
    try:
        merged = model.merge(base, changes)
    except UnknownNameError:
        raise
    except ValueError as error:
        raise ConfigError(f"learner: {error}") from None
    return validate(model, merged, "learner")
