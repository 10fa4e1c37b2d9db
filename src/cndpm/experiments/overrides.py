"""Parses ``--set section.field=value``, which overrides any field of the configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from cndpm.learner import LearnerSettings
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError, shown, validate

Settings = TypeVar("Settings", bound=LearnerSettings)


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


def validate_changed(model: type[Settings], base: Mapping[str, Any], changes: Mapping[str, Any]) -> Settings:
    """Builds a learner's settings from `base` with `changes`, or raises UnknownNameError or ConfigError."""
    try:
        merged = model.merge(base, changes)
    except UnknownNameError:
        raise
    except ValueError as error:
        raise ConfigError(f"learner: {error}") from None
    return validate(model, merged, "learner")
