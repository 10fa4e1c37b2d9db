"""The class that all sections of CN-DPM's settings derive from: takes every spelling, refuses other sections' names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import model_validator

from cndpm.learner import LearnerSettings
from cndpm.model.settings.spelling import nest


class Section(LearnerSettings):
    """Holds a part of the settings: typed, ranges checked, frozen.

    Names of inner sections may be given in place (``density={"latent_dim": 8}``) or alone (``latent_dim=8``); a section
    that only differs by its kind may be given as a word (``density="vae"``).
    """

    # Whether names inside are known outside; not where they mean something else there
    names_are_global: ClassVar[bool] = True
    bare: ClassVar[str] = ""  # the setting meant by an import path that is given in place of a kind

    @model_validator(mode="before")
    @classmethod
    def _put_in_place(cls, values: Any) -> Any:
        return nest(cls, values) if isinstance(values, Mapping) else values

    @classmethod
    def respelt(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Translates names that mean more than one setting; most sections have none."""
        return values
