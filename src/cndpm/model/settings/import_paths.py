"""Classes of the user's own, named by where they can be imported from: ``package.module:Class``."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from cndpm.names import ObjectNameError

ImportPath: TypeAlias = Annotated[str, Field(pattern=r"^[_A-Za-z][\w.]*:[_A-Za-z]\w*$")]
"""``package.module:Class``; nothing is imported before the class is needed."""


def imported(path: str, setting: str) -> Any:
    """Imports a class; ObjectNameError where there is no such module, or it has no such name."""
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ObjectNameError(
            f"{setting}={path!r} cannot be imported: {error}. It must read package.module:Class, and the package must "
            "be installed or on PYTHONPATH."
        ) from error
