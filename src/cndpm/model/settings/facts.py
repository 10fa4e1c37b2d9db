"""Facts of the stream that every part of a bank is made for, and the form of parts of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import torch

from cndpm.experts.neural.parts import Density, Predictor

__all__ = ["CustomDensity", "CustomPredictor"]

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
    is_watched: bool = False  # whether the latest rows are kept, so that a bank may be told when their range changes


class CustomDensity(Protocol):
    """Makes densities of one's own, as a class of them does.

    Example:
        >>> from cndpm.experts.neural.vae import VAE
        >>> make: CustomDensity = VAE
        >>> type(make((4,), lateral_widths=())).__name__
        'VAE'
    """

    def __call__(self, input_shape: tuple[int, ...], *, lateral_widths: tuple[int, ...]) -> Density:
        """Makes one expert's density."""


class CustomPredictor(Protocol):
    """Makes predictors of one's own, as a class of them does.

    Example:
        >>> from cndpm.experts.neural.lateral_predictors import Classifier
        >>> make: CustomPredictor = Classifier
        >>> type(make((4,), 2, lateral_widths=())).__name__
        'Classifier'
    """

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int, *, lateral_widths: tuple[int, ...]) -> Predictor:
        """Makes one expert's predictor; `n_outputs` are the classes known so far, or the number of targets."""
