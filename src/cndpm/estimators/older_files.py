"""Model files of format 1, of development versions before 0.1.0: without a version, settings and a checksum."""

from __future__ import annotations

from typing import Any

from cndpm.estimators.parameters import validated_settings
from cndpm.estimators.serial import from_plain
from cndpm.state import State, StateError

__all__ = ["DEFAULTS_THEN", "PARAMETERS_SINCE", "migrated"]

DEFAULTS_THEN: dict[str, Any] = {}
"""Settings whose defaults have changed since format 1, with the values of then; a test compares all defaults."""


PARAMETERS_SINCE: dict[str, Any] = {
    "n_exemplars": 0,
    "n_projected": 256,
    "class_weight": None,
    "false_alarm_rate": 0.05,
}
"""Parameters that files of earlier versions do not hold, with the values that do what was done then."""


def migrated(state: State, *, target: str) -> State:
    """Returns what the same model would export now.

    Args:
        state: The tree of a file of format 1.
        target: What the estimator predicts: "classes", "values" or "none".

    Raises:
        StateError: The learner's state is one that this version cannot read.
    """
    if "novelty" not in state["learner"]:
        raise StateError(
            "it was written by a development version of November 2026, commit ff62439 or before, whose state has other "
            "parts. Install that commit to load it"
        )
    return {**state, "settings": _settings_then(state, target)}


def _settings_then(state: State, target: str) -> dict[str, Any]:
    """Resolves settings by the defaults of then; the file only holds those that were given."""
    params = from_plain(state["params"])
    facts = {"target": target} | ({"n_outputs": state["n_outputs"]} if target == "values" else {})
    given = {**DEFAULTS_THEN, **(params["settings"] or {})}
    settings = validated_settings(given, facts, memory_size=params["memory_size"], log_alpha=params["log_alpha"])
    return settings.model_dump(mode="json")
