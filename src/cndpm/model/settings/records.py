"""Reads settings that earlier versions recorded: flat, complete, and with the paper's values as defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cndpm.model.settings.spelling import nest_known

if TYPE_CHECKING:
    from cndpm.model.settings.section import Section

__all__ = ["modernised"]

_THEN: Mapping[str, Any] = {"experts": "neural", "log_alpha": -400.0, "anytime": False}
"""What was done where a record says nothing."""

_RETIRED: Mapping[str, Any] = {
    "novelty_threshold": None,
    "n_layers": 2,
    "density_components": 10,
    "density_dropout": 0.1,
}
"""Settings that are constants now."""


def modernised(model: type[Section], values: Mapping[str, Any]) -> dict[str, Any]:
    """Turns recorded settings into nested ones.

    Flat records hold every setting, also those of kinds that were not chosen and did nothing: these are left out.

    Args:
        model: The settings as they are now.
        values: Settings as recorded by this version or an earlier one.

    Raises:
        ValueError: The run had a value that this version cannot have.
    """
    if isinstance(values.get("experts"), Mapping) or "novelty" in values:
        return dict(values)
    for name, constant in _RETIRED.items():
        if values.get(name, constant) != constant:
            raise ValueError(f"{name}={values[name]!r} was recorded; this version knows {constant!r} only")
    then = {**_THEN, **values}
    if then.get("density") == "autoregressive" and then.get("likelihood") != "logistic":
        then["likelihood"] = "bernoulli"  # which the default of the time meant there
    if then.get("target", "classes") != "values":
        then.pop("n_outputs", None)
    return nest_known(model, then)
