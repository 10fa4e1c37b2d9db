"""Names: what to say of one that is not known, and objects of one's own by the name ``package.module:Class``."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from cndpm.errors import CNDPMError

__all__ = ["ObjectNameError", "UnknownNameError"]


_MOST = 30
"""Names that a message lists."""

_MAX_LENGTH = 80
"""Characters of a name that a message repeats; no longer one resembles anything."""


class UnknownNameError(CNDPMError, ValueError):
    """A dataset, scenario or field was asked for by a name that does not exist; the message suggests those that do.

    Args:
        kind: What was asked for ("dataset", "scenario", ...).
        name: The name received.
        names: The names that exist.

    Example:
        >>> print(UnknownNameError("learner", "resevoir", ["reservoir", "finetune"]))
        there is no learner 'resevoir'. Did you mean reservoir?
    """

    def __init__(self, kind: str, name: str, names: Iterable[str]) -> None:
        known = tuple(names)
        near = nearest_names(name, known)
        more = [f"and {len(known) - _MOST} more"] if len(known) > _MOST else []
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join([*known[:_MOST], *more])}."
        received = repr(name) if len(name) <= _MAX_LENGTH else f"{name[:_MAX_LENGTH]!r} (and so on)"
        super().__init__(f"there is no {kind} {received}. {hint}")
        self.name = name
        self.suggestions = near


class ObjectNameError(CNDPMError, ValueError):
    """A name ``package.module:Class`` leads to nothing that can be used; the message says why and what to do."""


def nearest_names(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Returns up to three of `names` that look like `name`, the nearest first."""
    if len(name) > _MAX_LENGTH:
        return ()
    return tuple(get_close_matches(name.lower(), list(names), cutoff=0.6))


def is_object_name(name: str) -> bool:
    """Tells names of objects in modules from names that a registry knows, which have no colon."""
    return ":" in name


def load_object(name: str, base: type | None = None) -> Any:
    """Imports a module and returns an object in it.

    Raises:
        ObjectNameError: The name has no such form, its module cannot be imported, or the object is of another kind.
        UnknownNameError: The module has no such object; the nearest names are suggested.
    """
    module_name, _, path = name.partition(":")
    if not module_name or not all(path.split(".")):
        raise ObjectNameError(f"an object of one's own is named package.module:Class; got {name!r}")
    found: Any = _import(module_name, name)
    for part in path.split("."):
        if not hasattr(found, part):
            meant = [one for one, value in vars(found).items() if callable(value) and not one.startswith("_")]
            raise UnknownNameError(f"object in {module_name} called", path, meant)
        found = getattr(found, part)
    if base is not None and not (isinstance(found, type) and issubclass(found, base)):
        kind = f"the class {found.__qualname__}" if isinstance(found, type) else f"an object of {type(found)}"
        raise ObjectNameError(f"{name} must be a subclass of {object_name(base)}; it is {kind}")
    return found


def object_name(found: type) -> str:
    """Returns the name by which :func:`load_object` finds a class."""
    return f"{found.__module__}:{found.__qualname__}"


def _import(module: str, name: str) -> Any:
    """Imports a module; a mistake inside it that is not about imports shows its own trace."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ObjectNameError(
            f"{name!r} was asked for, but the module {module} cannot be imported: {error}. "
            "Install its package, or name its folder in PYTHONPATH."
        ) from error
