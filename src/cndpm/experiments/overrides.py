"""``--set section.field=value``: overrides any field of the configuration, with the same validation as everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from cndpm.learner import LearnerSettings
from cndpm.names import UnknownNameError

__all__ = ["ConfigError", "describe_errors", "parse_overrides", "parse_value", "validate", "validate_changed"]

Model = TypeVar("Model", bound=BaseModel)
Settings = TypeVar("Settings", bound=LearnerSettings)


class ConfigError(ValueError):
    """A configuration is not valid; the message names the field, what was received and what is allowed."""


def parse_overrides(texts: Iterable[str], sections: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Sorts overrides by section.

    Args:
        texts: Overrides as typed, e.g. ``"learner.log_alpha=-600"``; of two for one field the later counts.
        sections: The sections there are.

    Returns:
        For every section the fields to override; dotted fields become nested dictionaries.

    Example:
        >>> parse_overrides(["learner.log_alpha=-600"], ["learner", "run"])
        {'learner': {'log_alpha': -600}, 'run': {}}
    """
    overrides: dict[str, dict[str, Any]] = {section: {} for section in sections}
    for text in texts:
        path, equals, value = text.partition("=")
        names = [name.strip() for name in path.split(".")]
        if not equals or len(names) < 2 or not all(names):
            raise ConfigError(
                f"an override reads SECTION.FIELD=VALUE, for example learner.memory_size=1000; got {text!r}. "
                f"Sections: {', '.join(overrides)}."
            )
        if names[0] not in overrides:
            raise UnknownNameError("section of the configuration called", names[0], overrides)
        target = overrides[names[0]]
        for name in names[1:-1]:
            target = target.setdefault(name, {})
        target[names[-1]] = parse_value(value.strip())
    return overrides


def parse_value(text: str) -> Any:
    """A JSON value where it is one (numbers, true, null, lists), otherwise the text itself.

    Example:
        >>> parse_value("1e-3"), parse_value("[0, 1]"), parse_value("null"), parse_value("none")
        (0.001, [0, 1], None, 'none')
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {"true": True, "false": False}.get(text.lower(), text)


def validate(model: type[Model], values: Mapping[str, Any], section: str) -> Model:
    """Builds `model` from `values`.

    Raises:
        UnknownNameError: A field does not exist; the nearest names are suggested.
        ConfigError: A value is not allowed.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        for problem in error.errors():
            cause = problem.get("ctx", {}).get("error")
            if isinstance(cause, UnknownNameError):
                raise cause from None
            if problem["type"] == "extra_forbidden":
                *path, name = [str(part) for part in problem["loc"]]
                where = ".".join([section, *path])
                raise UnknownNameError(f"field in {where} called", name, _fields(model, path)) from None
        raise ConfigError(describe_errors(error, section)) from None


def validate_changed(model: type[Settings], base: Mapping[str, Any], changes: Mapping[str, Any]) -> Settings:
    """Builds a learner's settings from `base` with `changes` applied.

    Raises:
        UnknownNameError: A field does not exist; the nearest names are suggested.
        ConfigError: A value is not allowed, or a field does not belong to what was chosen.
    """
    try:
        merged = model.merge(base, changes)
    except UnknownNameError:
        raise
    except ValueError as error:
        raise ConfigError(f"learner: {error}") from None
    return validate(model, merged, "learner")


def describe_errors(error: ValidationError, section: str) -> str:
    """Every problem as field, rule and the value received, in one line."""
    lines = []
    for problem in error.errors():
        path = ".".join([section, *(str(part) for part in problem["loc"])])
        received = "" if problem["type"] == "value_error" else f"; got {problem['input']!r}"
        lines.append(f"{path}: {problem['msg'].removeprefix('Value error, ')}{received}")
    return "; ".join(lines)


def _fields(model: type[BaseModel], path: list[str]) -> list[str]:
    """The names of the fields at a path inside a model; of the model itself where the path leads to no model."""
    for name in path:
        field = model.model_fields.get(name)
        annotation = field.annotation if field is not None else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            break
        model = annotation
    return list(model.model_fields)
