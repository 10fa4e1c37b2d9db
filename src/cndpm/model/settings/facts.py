"""Facts of the stream that every part of a bank is made for, and parts of one's own: their form, and their names."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Literal, Protocol, TypeAlias

import torch
from pydantic import Field

from cndpm.experts import neural
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
