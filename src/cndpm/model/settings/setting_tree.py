"""The tree of settings as data: which section a name belongs to, and which choices lead there.

A field that holds one of several sections is a branch, and the kind of the section is the choice made there. Everything
is read off the classes themselves, so a new kind or a new field is known here as soon as it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

if TYPE_CHECKING:
    from cndpm.model.settings.facts import Section

KIND = "kind"
"""The field that tells the sections of a branch apart."""


@dataclass(frozen=True)
class Branch:
    """Describes a field that holds a section."""

    name: str  # of the field
    # The sections it may hold, by kind; under "" where there is only one, which has no kind
    members: Mapping[str, type[Section]]
    default: str  # the kind it holds where nothing is said

    @property
    def has_kinds(self) -> bool:
        """Whether there is a choice."""
        return "" not in self.members


@dataclass(frozen=True)
class Choice:
    """Names a kind that must be chosen."""

    path: tuple[str, ...]  # names of the fields that lead to the branch, its own last
    kind: str
    default: str  # the kind that is chosen there where nothing is said


@dataclass(frozen=True)
class Place:
    """Tells where a field stands."""

    path: tuple[str, ...]  # names of the fields that lead to it, its own last
    choices: tuple[Choice, ...]  # the kinds that must be chosen for it to exist, the outermost first
    owner: type[Section]  # the section that has it
    field: FieldInfo  # its type, range and description
    branch: Branch | None  # its sections, where it holds one
    by_name: bool  # whether its name alone tells where it belongs

    @property
    def name(self) -> str:
        """Of the field."""
        return self.path[-1]


@cache
def branches(model: type[Section]) -> dict[str, Branch]:
    """Returns the fields of a section that hold sections."""
    found = {}
    for name, field in model.model_fields.items():
        members = {_kind(section): section for section in _sections(field.annotation)}
        if members:
            found[name] = Branch(name, members, _kind(type(field.default)))
    return found


@cache
def walk(
    model: type[Section], path: tuple[str, ...] = (), choices: tuple[Choice, ...] = (), *, by_name: bool = True
) -> tuple[Place, ...]:
    """Returns every field of a section and of those below it, kinds left out; the tree's order, outer before inner."""
    found: list[Place] = []
    for name, field in model.model_fields.items():
        if name == KIND:
            continue
        here, branch = (*path, name), branches(model).get(name)
        found.append(Place(here, choices, model, field, branch, by_name))
        for kind, section in branch.members.items() if branch is not None else ():
            chosen = (*choices, Choice(here, kind, branch.default)) if branch and branch.has_kinds else choices
            found += walk(section, here, chosen, by_name=by_name and section.names_are_global)
    return tuple(found)


@cache
def places(model: type[Section]) -> dict[str, tuple[Place, ...]]:
    """Returns all places of every name below a section."""
    found: dict[str, tuple[Place, ...]] = {}
    for place in walk(model):
        found[place.name] = (*found.get(place.name, ()), place)
    return found


def kind_at(tree: Mapping[str, Any], choice: Choice) -> str:
    """Returns the kind that nested settings have chosen at the branch of `choice`."""
    node: Any = tree
    for name in choice.path:
        node = node.get(name) if isinstance(node, Mapping) else None
    return str(node.get(KIND, choice.default)) if isinstance(node, Mapping) else choice.default


def unmet(place: Place, tree: Mapping[str, Any]) -> list[Choice]:
    """Returns the choices that nested settings would have to make differently for a place to exist."""
    return [choice for choice in place.choices if kind_at(tree, choice) != choice.kind]


def _sections(annotation: Any) -> Iterator[type[Section]]:
    """Yields the sections among the types of a field; its arguments are looked through (unions, Annotated)."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation  # type: ignore[misc]
    for argument in get_args(annotation):
        yield from _sections(argument)


def _kind(section: type[Any]) -> str:
    fields: Mapping[str, FieldInfo] = getattr(section, "model_fields", {})
    return str(fields[KIND].default) if KIND in fields else ""
