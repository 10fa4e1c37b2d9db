"""Turns settings as they are written into nested ones: names find their section, words become kinds, others a reason.

    {"experts": "neural", "latent_dim": 8}
    {"experts": {"kind": "neural", "density": {"kind": "vae", "latent_dim": 8}}}

Both mean the same. Values are not looked at here: types and ranges are checked by the sections themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel

from cndpm.model.settings.setting_tree import KIND, Branch, Choice, Place, branches, kind_at, places, unmet, walk
from cndpm.names import UnknownNameError, nearest_names

if TYPE_CHECKING:
    from cndpm.model.settings.facts import Section


Tree: TypeAlias = dict[str, Any]
"""Nested settings: sections are dictionaries, and those of a branch carry their kind."""

_OWN = "own"


def nest(model: type[Section], values: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> Tree:
    """Puts every name into its section; what is not given stays out and takes its default.

    UnknownNameError: there is no such setting or kind. ValueError: one belongs to a kind not chosen, or is given twice.

    Example:
        >>> from cndpm.model.settings import CNDPMSettings
        >>> nest(CNDPMSettings, {"experts": "neural", "latent_dim": 8})
        {'experts': {'kind': 'neural', 'density': {'kind': 'vae', 'latent_dim': 8}}}
    """
    notes = _Notes()
    tree = _nest(model, values, base, notes)
    if notes.lost:
        raise refusal(model, tree, *notes.lost[0])
    return tree


@dataclass
class _Notes:
    """Notes taken on the way."""

    path: tuple[str, ...] = ()  # of the section at hand, from where the nesting began
    written: set[tuple[str, ...]] = field(default_factory=set)  # paths of the settings that were given
    # Names without a place, each after the path of the section in which it was given
    lost: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    def at(self, path: tuple[str, ...]) -> _Notes:
        """Returns the same notes, taken in a section further down."""
        return _Notes(self.path + path, self.written, self.lost)


def _nest(model: type[Section], values: Mapping[str, Any], base: Mapping[str, Any] | None, notes: _Notes) -> Tree:
    tree: Tree = deepcopy(dict(base)) if base is not None else {}
    given = model.respelt(dict(values))
    if KIND in given and KIND in model.model_fields:
        tree[KIND] = given[KIND]
    for own in [place for place in walk(model) if len(place.path) == 1 and place.name in given]:
        _put(model, tree, own, given[own.name], notes)
    waiting = {name: value for name, value in given.items() if name not in model.model_fields}
    while (place := _next_place(model, tree, waiting)) is not None:
        _put(model, tree, place, waiting.pop(place.name), notes)
    notes.lost += [(notes.path, name) for name in waiting]
    return tree


def _next_place(model: type[Section], tree: Tree, waiting: Mapping[str, Any]) -> Place | None:
    """Returns the open place of one of the waiting names: a branch before a value, an outer branch before an inner."""
    found = [
        place for name in waiting for place in places(model).get(name, ()) if place.by_name and not unmet(place, tree)
    ]
    return min(found, key=lambda place: (place.branch is None, len(place.path)), default=None)


def _put(model: type[Section], tree: Tree, place: Place, value: Any, notes: _Notes) -> None:
    """Writes a value at its place; sections on the way that nobody has mentioned come into being with their kind."""
    if notes.path + place.path in notes.written:
        raise ValueError(
            f"{place.name} is given twice: by its name alone and inside {place.path[0]!r}. Leave one of them out."
        )
    notes.written.add(notes.path + place.path)
    node = tree
    for name in place.path[:-1]:
        branch = branches(model)[name]
        node = node.setdefault(name, {KIND: branch.default} if branch.has_kinds else {})
        model = branch.members[node.get(KIND, branch.default)]
    old = node.get(place.name)
    node[place.name] = value if place.branch is None else _section(place.branch, value, old, notes.at(place.path))


def _section(branch: Branch, value: Any, base: Tree | None, notes: _Notes) -> Tree:
    """Nests what is given for a branch: a kind, a section or its settings."""
    given = _as_settings(branch, value)
    if not branch.has_kinds:
        return _nest(branch.members[branch.default], given, base, notes)
    kind = given.pop(KIND, (base or {}).get(KIND, branch.default))
    if not isinstance(kind, str) or kind not in branch.members:
        raise UnknownNameError(f"kind of {branch.name}", str(kind), branch.members)
    kept = base if base is not None and base[KIND] == kind else None
    return {KIND: kind, **_nest(branch.members[kind], given, kept, notes)}


def _as_settings(branch: Branch, value: Any) -> Tree:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str) and branch.has_kinds:
        # A class of one's own is named by its import path, which no kind looks like.
        is_path = ":" in value and _OWN in branch.members
        return {KIND: _OWN, branch.members[_OWN].bare: value} if is_path else {KIND: value}
    kinds = f"{either(branch.members)}, or " if branch.has_kinds else ""
    raise ValueError(f"{branch.name} must be {kinds}a dictionary of settings; got {value!r}")


def refusal(model: type[Section], tree: Mapping[str, Any], within: tuple[str, ...], name: str) -> ValueError:
    """Returns the error for a name that has no place.

    Example:
        >>> from cndpm.model.settings import CNDPMSettings
        >>> print(refusal(CNDPMSettings, {}, (), "density_lr"))
        density_lr is a setting of experts='neural'; got experts='gaussian'. Set experts='neural', or leave it out.
    """
    known = places(model).get(name, ())
    if not known:
        all_, open_ = places(model), [n for n, found in places(model).items() if not unmet(found[0], tree)]
        return UnknownNameError("setting", name, all_ if nearest_names(name, all_) else open_)
    for place in known:
        if not unmet(place, tree):
            return _elsewhere(place, within)
    named = [place for place in known if place.by_name] or list(known)
    nearest = min(len(unmet(place, tree)) for place in named)
    return _of_other_kind(tree, name, [place for place in named if len(unmet(place, tree)) == nearest])


def _elsewhere(place: Place, within: tuple[str, ...]) -> ValueError:
    """Returns the error for a name given in a section that is not its own."""
    *path, name = place.path
    if not path:
        return ValueError(f"{name} is no setting of {within[0]} but stands beside it. Move it there.")
    wrong = f"not of {'.'.join(within)}" if within else "and known by its name there only"
    return ValueError(
        f"{name} is a setting of {'.'.join(path)}, {wrong}. Give it as {path[-1]}={{{name!r}: ...}}, or leave it out."
    )


def _of_other_kind(tree: Mapping[str, Any], name: str, best: list[Place]) -> ValueError:
    first, *others = unmet(best[0], tree)
    kinds = dict.fromkeys(c.kind for place in best for c in unmet(place, tree)[:1] if c.path == first.path)
    where = f"{first.path[-1]}={either(kinds)}" + "".join(f" with {_said(choice)}" for choice in others)
    remedy = " and ".join(_said(choice) for choice in (first, *others))
    got = f"{first.path[-1]}={kind_at(tree, first)!r}"
    return ValueError(f"{name} is a setting of {where}; got {got}. Set {remedy}, or leave it out.")


def _said(choice: Choice) -> str:
    return f"{choice.path[-1]}={choice.kind!r}"


def either(kinds: Any) -> str:
    """Joins kinds for a message."""
    return " or ".join(repr(kind) for kind in kinds)
