"""What every part of a bank is told of the stream it is made for, and what parts of one's own look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import torch

from cndpm.experts.neural.parts import Density, Predictor

__all__ = ["CustomDensity", "CustomPredictor", "Facts", "Target"]

Target: TypeAlias = Literal["classes", "values", "none"]


@dataclass(frozen=True)
class Facts:
    """A stream, and where and how randomly it is learned.

    Attributes:
        target: What y is.
        n_outputs: Number of real-valued targets.
        input_shape: Shape of one sample.
        n_classes: Number of classes; None where they are discovered.
        seed: Determines initialisations, batches and noise.
        device: Where everything lives.
    """

    target: Target
    n_outputs: int
    input_shape: tuple[int, ...]
    n_classes: int | None
    seed: int
    device: torch.device


class CustomDensity(Protocol):
    """A density class of the user's own."""

    def __call__(self, input_shape: tuple[int, ...], *, lateral_widths: tuple[int, ...]) -> Density:
        """Makes one expert's density."""


class CustomPredictor(Protocol):
    """A predictor class of the user's own."""

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int, *, lateral_widths: tuple[int, ...]) -> Predictor:
        """Makes one expert's predictor; `n_outputs` are the classes known so far, or the number of targets."""
