"""Settings by their names alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cndpm.model.settings.tree import KIND, branches

if TYPE_CHECKING:
    from cndpm.model.settings.section import Section


def flat(section: Section) -> dict[str, Any]:
    """Returns every setting that counts under the kinds chosen, by its name alone.

    A branch is given by its kind, a class of one's own by its import path. A section whose names mean something else
    outside stays a dictionary.
    """
    values: dict[str, Any] = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if name not in branches(type(section)):
            values |= {} if name == KIND else {name: value}
        elif not value.names_are_global:
            values[name] = value.model_dump()
        elif value.bare:
            values[name] = getattr(value, value.bare)
        else:
            values |= {name: value.kind} if hasattr(value, KIND) else {}
            values |= flat(value)
    return values
