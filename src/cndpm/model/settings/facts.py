"""Common to all sections of settings: their class, the facts of the stream, and how parts of one's own are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

import torch
from pydantic import Field, model_validator

from cndpm.experts import neural
from cndpm.learner import LearnerSettings
from cndpm.model.settings.spelling import nest
from cndpm.names import ObjectNameError

Target: TypeAlias = Literal["classes", "values", "none"]
"""Kinds of y: class indices, real values, or none."""


@dataclass(frozen=True)
class Facts:
    """Describes a stream, the device it is learned on and the seed."""

    target: Target  # what y is
    n_outputs: int  # number of real-valued targets
    input_shape: tuple[int, ...]  # shape of one sample
    n_classes: int | None  # number of classes; None where they are discovered
    seed: int  # determines initialisations, batches and noise
    device: torch.device  # where everything lives
    keeps_latest: bool = False  # whether the latest rows are kept, so that a bank may be told when their range changes


class CustomDensity(Protocol):
    """Makes densities of one's own, as a class of them does."""

    def __call__(self, input_shape: tuple[int, ...], *, lateral_widths: tuple[int, ...]) -> neural.Density:
        """Makes one expert's density."""


class CustomPredictor(Protocol):
    """Makes predictors of one's own, as a class of them does."""

    def __call__(
        self, input_shape: tuple[int, ...], n_outputs: int, *, lateral_widths: tuple[int, ...]
    ) -> neural.Predictor:
        """Makes one expert's predictor; `n_outputs` are the classes known so far, or the number of targets."""


ImportPath: TypeAlias = Annotated[str, Field(pattern=r"^[_A-Za-z][\w.]*:[_A-Za-z]\w*$")]
"""``package.module:Class``; nothing is imported before the class is needed."""


def imported(path: str, setting: str) -> Any:
    """Imports a class; ObjectNameError where there is no such module, or it has no such name."""
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ObjectNameError(
            f"{setting}={path!r} cannot be imported: {error}. It must read package.module:Class, and the package must "
            "be installed or on PYTHONPATH."
        ) from error


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
