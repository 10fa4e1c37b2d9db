"""The reference of all settings, docs/settings.md, written from the sections themselves.

python -m figures.settings_page > docs/settings.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from cndpm.model.settings.facts import Section
from cndpm.model.settings.setting_tree import KIND, Place, walk
from cndpm.model.settings.settings import CNDPMSettings

_OPENING = """\
# Settings of CN-DPM

Every setting, section by section; written by `python -m figures.settings_page`. A choice opens the section of its
kind, and a setting of a kind that is not chosen is refused. All of these mean the same:

```python
from cndpm.model.settings import CNDPMSettings

CNDPMSettings(experts="neural", latent_dim=8, log_alpha=-600)
CNDPMSettings(experts={"kind": "neural", "density": {"kind": "vae", "latent_dim": 8}}, log_alpha=-600)
CNDPMSettings(experts={"kind": "neural", "latent_dim": 8}, novelty={"kind": "fixed", "log_alpha": -600})
```

- A name finds its section by itself; only those of `companions` must be given there, as `companions={"hidden": 32}`.
- `log_alpha=-600` chooses `novelty="fixed"`, `log_alpha="auto"` chooses `novelty="auto"`.
- `CNDPMSettings.paper(...)` starts from the paper's Split-MNIST classification: `experts="neural"`, `log_alpha=-400`,
  `anytime=False`. `settings.changed(...)` returns settings with changes; a section whose kind changes starts anew.
- On the command line: `--set learner.latent_dim=8`. In estimators: `settings={...}`, or the parameter
  `settings__latent_dim`.
- `features`, `density` and `predictor` may be the import path of a class of one's own, `"package.module:Class"`.
"""

_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
_WORDS = {int: "integer", float: "number", str: "text", bool: "`true`, `false`", NoneType: "`null`"}


def reference() -> str:
    """Returns the page as Markdown."""
    return "\n".join([_OPENING, *_sections()])


def _sections() -> Iterator[str]:
    by_owner: dict[type[Section], list[Place]] = {}
    for place in walk(CNDPMSettings):
        by_owner.setdefault(place.owner, []).append(place)
    sections: dict[str, tuple[list[str], list[str]]] = {}
    for owner, found in by_owner.items():
        titles, sentences = sections.setdefault(_table(found), ([], []))
        titles.append(_title(found))
        sentences += [_sentence(owner.model_fields[KIND].description)] if KIND in owner.model_fields else []
    for table, (titles, sentences) in sections.items():
        yield f"## {'; '.join(titles)}\n"
        yield from [f"{' '.join(sentences)}\n"] if sentences else []
        yield f"{table}\n"


def _table(found: list[Place]) -> str:
    rows = {place.name: place for place in found}
    return "\n".join(["| setting | values | default | meaning |\n|---|---|---|---|", *map(_row, rows.values())])


def _title(found: list[Place]) -> str:
    """Returns where a section stands; it may stand in more than one place."""
    titles = []
    for place in found:
        words = [f"{choice.path[-1]} = {choice.kind}" for choice in place.choices[-1:]]
        words += [name for name in place.path[-2:-1] if not place.choices or name != place.choices[-1].path[-1]]
        titles.append(", ".join(words) or "CNDPMSettings")
    return "; ".join(dict.fromkeys(titles))


def _row(place: Place) -> str:
    described = "; ".join([place.field.description or "", *_kinds_alone(place)]).replace("|", "\\|")
    return f"| `{place.name}` | {_values(place)} | {_default(place)} | {described} |"


def _kinds_alone(place: Place) -> Iterator[str]:
    """Yields the kinds that have no settings, and so no section of their own."""
    for kind, section in place.branch.members.items() if place.branch is not None else ():
        if set(section.model_fields) == {KIND}:
            yield f"`{kind}`: {section.model_fields[KIND].description}"


def _values(place: Place) -> str:
    if place.branch is None:
        return _type(place.field.annotation, place.field.metadata)
    return ", ".join(f"`{kind}`" for kind in place.branch.members) if place.branch.has_kinds else "a section"


def _type(annotation: Any, metadata: list[Any]) -> str:
    """Returns what a field may hold, in words: the parts of a union in their order, a number with its range."""
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    if isinstance(annotation, type):
        return " ".join([_WORDS[annotation], *_bounds(metadata if annotation in (int, float) else [])])
    if hasattr(annotation, "__metadata__"):
        inner, *notes = get_args(annotation)
        return _type(inner, [m for note in notes for m in (note.metadata if isinstance(note, FieldInfo) else [note])])
    return ", ".join(_type(part, metadata) for part in get_args(annotation))


def _bounds(metadata: list[Any]) -> list[str]:
    found = [f"{sign} {getattr(m, name):g}" for m in metadata for name, sign in _BOUNDS.items() if hasattr(m, name)]
    return [", ".join(found)] if found else []


def _default(place: Place) -> str:
    if place.field.is_required():
        return "none: must be given"
    if place.branch is not None:
        return f"`{place.branch.default}`" if place.branch.has_kinds else "as below"
    value = place.field.default
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"


def _sentence(text: str | None) -> str:
    words = text or ""
    return f"{words[:1].upper()}{words[1:]}."


if __name__ == "__main__":
    print(reference(), end="")
