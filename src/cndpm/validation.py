"""Builds models of pydantic from plain values, with one way to say what is wrong with them."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from cndpm.errors import CNDPMError
from cndpm.names import UnknownNameError

__all__ = ["ConfigError", "describe_errors", "shown", "validate"]

_MOST = 3
"""Problems that one message tells."""

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60
_REPR.maxlevel = 3
_LONGEST = 200

Model = TypeVar("Model", bound=BaseModel)


class ConfigError(CNDPMError, ValueError):
    """A configuration is not valid; the message names the field, what was received and what is allowed."""


def validate(model: type[Model], values: Mapping[str, Any], section: str) -> Model:
    """Builds `model` from `values`.

    Args:
        model: The class to build.
        values: Its fields by name.
        section: What stands before the names of fields in messages.

    Raises:
        UnknownNameError: A field does not exist; the nearest names are suggested.
        ConfigError: A value is not allowed.

    Example:
        >>> class Size(BaseModel):
        ...     height: int
        >>> validate(Size, {"height": "12"}, "size")
        Size(height=12)
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
    """Returns problems as field, rule and the value received, in one line; the first few where there are many.

    Args:
        error: What pydantic raised.
        section: What stands before the names of fields; nothing where it is empty.
    """
    problems, lines = error.errors(), []
    # A sequence without its wrong items may be too short: that follows from those, and is no problem of its own.
    inside = {problem["loc"][:n] for problem in problems for n in range(1, len(problem["loc"]))}
    causes = [problem for problem in problems if problem["type"] != "too_short" or problem["loc"] not in inside]
    for problem in causes[:_MOST]:
        path = ".".join([*([section] if section else []), *(str(part) for part in problem["loc"])])
        received = "" if problem["type"] == "value_error" else f"; got {shown(problem['input'])}"
        lines.append(f"{path}{': ' if path else ''}{problem['msg'].removeprefix('Value error, ')}{received}")
    more = [f"and {len(causes) - _MOST} more"] if len(causes) > _MOST else []
    return "; ".join(lines + more)


def shown(value: Any) -> str:
    """Returns a value as a message shows it: in one line of bounded length.

    Example:
        >>> shown(list(range(1000))), len(shown("a" * 1000))
        ('[0, 1, 2, 3, 4, 5, ...]', 60)
    """
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
