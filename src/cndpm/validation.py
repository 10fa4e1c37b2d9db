"""Builds models of pydantic from plain values, with one way to say what is wrong with them."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from cndpm.errors import CNDPMError
from cndpm.names import UnknownNameError

__all__ = ["ConfigError"]

_MOST = 3
"""Problems that one message tells."""

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60
_REPR.maxlevel = 3
_LONGEST = 200

_TYPE = re.compile(r"int|float|str|bool|none|.*[\[(-]")
"""Matches the names that pydantic has for types, and no name of a field."""

Model = TypeVar("Model", bound=BaseModel)


class ConfigError(CNDPMError, ValueError):
    """A configuration is not valid; the message names the field, what was received and what is allowed."""


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


def describe_errors(error: ValidationError, section: str = "") -> str:
    """Returns problems as field, rule and the value received, in one line; the first few where there are many."""
    problems, lines = error.errors(), []
    # A sequence without its wrong items may be too short: that follows from those, and is no problem of its own.
    inside = {problem["loc"][:n] for problem in problems for n in range(1, len(problem["loc"]))}
    causes = [problem for problem in problems if problem["type"] != "too_short" or problem["loc"] not in inside]
    fields = _by_field(causes)
    for location, rules, problem in fields[:_MOST]:
        path = ".".join([*([section] if section else []), *(str(part) for part in location)])
        received = "" if problem["type"] == "value_error" else f"; got {shown(problem['input'])}"
        lines.append(f"{path}{': ' if path else ''}{', or '.join(rules)}{received}")
    more = [f"and {len(fields) - _MOST} more"] if len(fields) > _MOST else []
    return "; ".join(lines + more)


def _by_field(problems: list[Any]) -> list[tuple[tuple[Any, ...], list[str], Any]]:
    """Returns place, rules and first problem of each field.

    A field that may be of several types has one problem for each of them, whose place ends with the name of the type.
    """
    found: list[tuple[tuple[Any, ...], list[str], Any]] = []
    for problem in problems:
        rule, place = problem["msg"].removeprefix("Value error, "), problem["loc"]
        last = found[-1] if found else None
        if last and place and _TYPE.match(str(place[-1])) and last[2]["loc"][:-1] == place[:-1]:
            found[-1] = (place[:-1], [*map(_short, last[1]), _short(rule).removeprefix("Input should be ")], last[2])
        else:
            found.append((place, [rule], problem))
    return found


def _short(rule: str) -> str:
    return rule.partition(", unable to parse")[0]


def shown(value: Any) -> str:
    """Returns a value as a message shows it: in one line of bounded length."""
    try:
        text = " ".join(_REPR.repr(value).split())
    except ValueError:  # Python shows no number of many thousands of digits
        return f"a very long {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _fields(model: type[BaseModel], path: list[str]) -> list[str]:
    """Returns the names of the fields at a path inside a model; of the last model on it where it leads to none."""
    for name in path:
        field = model.model_fields.get(name)  # the number of an item in a sequence is no field
        model = (_model_in(field.annotation) if field is not None else None) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Returns the model that an annotation is of or holds: ``Stage``, ``tuple[Stage, ...]``, ``Stage | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)
