"""Draws settings of CN-DPM from the tree itself: sensible ones, and ones with one mistake."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from cndpm.model.settings import CNDPMSettings
from cndpm.model.settings.facts import Section
from cndpm.model.settings.setting_tree import KIND, Place, branches, places, unmet, walk

OWN = "collections:OrderedDict"
LEAVES = [place for place in walk(CNDPMSettings) if place.branch is None]


def value_of(random: Random, annotation: Any, metadata: list[Any]) -> Any:
    """A value that a field takes."""
    if get_origin(annotation) is Literal:
        return random.choice(get_args(annotation))
    if annotation is NoneType:
        return None
    if annotation is bool:
        return random.random() < 0.5
    if annotation is str:
        return OWN
    if annotation in (int, float):
        low, high = bound(metadata, "ge", "gt"), bound(metadata, "le", "lt")
        if annotation is int:
            return random.randint(low or 0, (low or 0) + 50)
        return round(random.uniform(low if low is not None else -500, high if high is not None else 500), 3) or 0.25
    if hasattr(annotation, "__metadata__"):
        inner, *notes = get_args(annotation)
        return value_of(random, inner, [m for n in notes for m in (n.metadata if isinstance(n, FieldInfo) else [n])])
    return value_of(random, random.choice(get_args(annotation)), metadata)


def bound(metadata: list[Any], *names: str) -> Any:
    return next((getattr(m, name) for m in metadata for name in names if hasattr(m, name)), None)


def draw(random: Random, share: float = 0.3) -> dict[str, Any]:
    """Nested settings: random kinds, and of the other fields a random share; some do not suit each other."""
    tree: dict[str, Any] = {}
    for place in walk(CNDPMSettings):
        if unmet(place, tree) or not (place.branch or place.field.is_required() or random.random() < share):
            continue
        node = tree
        for name in place.path[:-1]:
            node = node[name]
        if place.branch is None:
            node[place.name] = value_of(random, place.field.annotation, place.field.metadata)
        else:
            node[place.name] = {KIND: random.choice(list(place.branch.members))} if place.branch.has_kinds else {}
    return tree


def opening(place: Place) -> dict[str, Any]:
    """Nested settings that choose all that a place needs, and say no more."""
    tree: dict[str, Any] = {}
    for choice in place.choices:
        node = tree
        for name in choice.path[:-1]:
            node = node.setdefault(name, {})
        node[choice.path[-1]] = {KIND: choice.kind}
    return tree


def put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The tree with one more value."""
    node = tree
    for name in path[:-1]:
        node = node.setdefault(name, {})
    node[path[-1]] = value
    return tree


def nonsense(random: Random) -> tuple[dict[str, Any], str]:
    """Settings with one mistake, and the name that must be in the message."""
    return random.choice([of_another_kind, out_of_range, of_wrong_type, unknown])(random)


def of_another_kind(random: Random) -> tuple[dict[str, Any], str]:
    tree = draw(random, share=0.0)
    closed = [name for name, found in places(CNDPMSettings).items() if all(unmet(place, tree) for place in found)]
    place = random.choice(places(CNDPMSettings)[random.choice(closed)])
    value = (
        random.choice(list(place.branch.members)) or {}
        if place.branch is not None
        else value_of(random, place.field.annotation, place.field.metadata)
    )
    within = [path for path in ((), ("experts",), ("novelty",)) if isinstance(at(tree, path), Mapping)]
    return put(tree, (*random.choice(within), place.name), value), place.name


def out_of_range(random: Random) -> tuple[dict[str, Any], str]:
    place = random.choice([place for place in LEAVES if bound(ranges(place), "ge", "gt", "le", "lt") is not None])
    low, high = bound(ranges(place), "ge", "gt"), bound(ranges(place), "le", "lt")
    wrong = [low - 1] if low is not None else []
    wrong += [high + 1] if high is not None else []
    return given(random, place, random.choice(wrong))


def of_wrong_type(random: Random) -> tuple[dict[str, Any], str]:
    place = random.choice(LEAVES)
    takes_words = place.field.annotation is str or str in get_args(place.field.annotation)
    return given(random, place, random.choice([*([] if takes_words else ["many"]), [1, 2], {"a": 1}, object()]))


def unknown(random: Random) -> tuple[dict[str, Any], str]:
    tree = draw(random, share=0.0)
    place = random.choice(LEAVES)
    name = "".join(random.sample(place.name, len(place.name))) + random.choice(["s", "_", "x"])
    within = [path for path in ((), ("experts",), ("novelty",)) if isinstance(at(tree, path), Mapping)]
    return put(tree, (*random.choice(within), name), 1), name


def given(random: Random, place: Place, value: Any) -> tuple[dict[str, Any], str]:
    """The value at its place, or by its name alone."""
    alone = place.by_name and random.random() < 0.5
    return put(opening(place), (place.name,) if alone else place.path, value), place.name


def ranges(place: Place) -> list[Any]:
    """The bounds of a field, also where they stand inside a union."""
    inner = [note for part in get_args(place.field.annotation) for note in getattr(part, "__metadata__", ())]
    return [*place.field.metadata, *(m for note in inner for m in getattr(note, "metadata", []))]


def at(tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    node: Any = tree
    for name in path:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


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
