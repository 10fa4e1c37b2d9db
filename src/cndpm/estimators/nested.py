"""Settings as parameters of their own, as grid searches name them: ``settings__n_patches``.

model.set_params(settings__n_patches=64)
model.set_params(settings__experts__features__n_patches=64)
GridSearchCV(model, {"settings__n_patches": [32, 64]})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cndpm.model.settings import CNDPMSettings

SEPARATOR = "__"
"""Stands between the parts of a nested parameter's name, as in scikit-learn."""


def leaves(settings: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Returns every value of nested settings by its path.

    Example:
        >>> leaves({"experts": {"kind": "neural"}, "hidden": 8}, "settings")
        {'settings__experts__kind': 'neural', 'settings__hidden': 8}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        path = f"{prefix}{SEPARATOR}{name}"
        found |= leaves(value, path) if isinstance(value, Mapping) else {path: value}
    return found


def changed_settings(settings: Mapping[str, Any] | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings with changes by path, or raises ValueError; they keep their spelling where they can."""
    nested = _nested(changes)
    tree = CNDPMSettings.merge(settings or {}, nested)
    spelt = _overlaid(settings or {}, nested)
    try:
        return spelt if CNDPMSettings.merge({}, spelt) == tree else tree
    except ValueError:  # the same setting in two spellings: the nested one holds each once
        return tree


def _nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in changes.items():
        *sections, name = path.split(SEPARATOR)
        node = nested
        for section in sections:
            node = node.setdefault(section, {})
        node[name] = value
    return nested


def _overlaid(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    overlaid = dict(settings)
    for name, value in changes.items():
        inner = overlaid.get(name)
        overlaid[name] = _overlaid(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return overlaid
