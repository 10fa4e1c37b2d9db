"""Says why a setting is refused: what was wrong, what was chosen, where it belongs and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cndpm.model.settings.places import Choice, Place, kind_at, places, unmet
from cndpm.names import UnknownNameError, nearest_names

if TYPE_CHECKING:
    from cndpm.model.settings.section import Section


def refusal(model: type[Section], tree: Mapping[str, Any], within: tuple[str, ...], name: str) -> ValueError:
    """Returns the error for a name that has no place.

    Example:
        >>> from cndpm.model.settings import CNDPMSettings
        >>> print(refusal(CNDPMSettings, {}, (), "density_lr"))
        density_lr is a setting of experts='neural'; got experts='gaussian'. Set experts='neural', or leave it out.
    """
    known = places(model).get(name, ())
    if not known:
        return _unknown(model, tree, name)
    for place in known:
        if not unmet(place, tree):
            return _elsewhere(place, within)
    named = [place for place in known if place.by_name] or list(known)
    nearest = min(len(unmet(place, tree)) for place in named)
    return _of_other_kind(tree, name, [place for place in named if len(unmet(place, tree)) == nearest])


def _unknown(model: type[Section], tree: Mapping[str, Any], name: str) -> ValueError:
    if nearest_names(name, places(model)):
        return UnknownNameError("setting", name, places(model))
    return UnknownNameError("setting", name, [n for n, found in places(model).items() if not unmet(found[0], tree)])


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
