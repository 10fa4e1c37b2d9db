"""The shape of the networks of neural experts: fully connected or residual."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, cast

from pydantic import Field

from cndpm.experts import neural
from cndpm.model.settings.section import Section

_N_LAYERS = 2
_HIDDEN = "units per layer of the first expert's networks, where they are fully connected"
_HIDDEN_GROWTH = "units per layer that each later expert adds"
_CHANNELS = "channels of the first stage of the first expert's residual network"
_CHANNEL_GROWTH = "channels that each later expert adds to it"


class _Shaped(Section):
    """Chooses an architecture by name, without looking at the input; abstract."""

    def resolved(self, input_shape: tuple[int, ...]) -> ShapedNetworks:
        """Returns the networks meant for samples of this shape: the same for all."""
        return cast("ShapedNetworks", self)


class PlainNetworks(_Shaped):
    """Chooses fully connected networks of two hidden layers."""

    kind: Literal["mlp"] = Field(default="mlp", description="fully connected predictors and densities")
    hidden: int = Field(default=64, ge=1, description=_HIDDEN)
    hidden_growth: int = Field(default=16, ge=1, description=_HIDDEN_GROWTH)

    def widths(self, *, first: bool) -> tuple[int, ...]:
        """Returns the units of each layer of an expert's columns."""
        return (self.hidden if first else self.hidden_growth,) * _N_LAYERS

    def trunk(self, input_shape: tuple[int, ...], lateral_widths: tuple[int, ...], *, first: bool) -> None:
        """Returns None: predictors make their own columns of these widths."""


class _Residual(_Shaped):
    """Settings of residual networks, whatever the number of blocks a stage."""

    _n_blocks: ClassVar[int]
    channels: int = Field(default=20, ge=1, description=_CHANNELS)
    channel_growth: int = Field(default=4, ge=1, description=_CHANNEL_GROWTH)

    def trunk(
        self, input_shape: tuple[int, ...], lateral_widths: tuple[int, ...], *, first: bool
    ) -> neural.LateralResNet:
        """Makes a predictor's column."""
        channels = self.channels if first else self.channel_growth
        return neural.LateralResNet(input_shape, channels, n_blocks=self._n_blocks, lateral_widths=lateral_widths)


class ResNetNetworks(_Residual):
    """Chooses residual predictors of one block a stage, and convolutional densities."""

    _n_blocks = 1
    kind: Literal["resnet"] = Field(
        default="resnet", description="residual predictors of one block a stage, convolutional densities"
    )


class ResNet18Networks(_Residual):
    """Chooses residual predictors of two blocks a stage, as in ResNet-18, and convolutional densities."""

    _n_blocks = 2
    kind: Literal["resnet18"] = Field(
        default="resnet18", description="residual predictors of two blocks a stage, convolutional densities"
    )


class AutoNetworks(Section):
    """Chooses by the samples: residual networks for colour images that they can halve twice, plain ones for others."""

    kind: Literal["auto"] = Field(
        default="auto",
        description="'resnet' for samples (channels, height, width) with several channels and sides of at least 16 "
        "divisible by 4, else 'mlp'",
    )
    hidden: int = Field(default=64, ge=1, description=_HIDDEN)
    hidden_growth: int = Field(default=16, ge=1, description=_HIDDEN_GROWTH)
    channels: int = Field(default=20, ge=1, description=_CHANNELS)
    channel_growth: int = Field(default=4, ge=1, description=_CHANNEL_GROWTH)

    def resolved(self, input_shape: tuple[int, ...]) -> ShapedNetworks:
        """Returns the networks meant for samples of this shape."""
        is_colour = len(input_shape) == 3 and input_shape[0] > 1
        if is_colour and all(n >= 16 and n % 4 == 0 for n in input_shape[1:]):
            return ResNetNetworks(channels=self.channels, channel_growth=self.channel_growth)
        return PlainNetworks(hidden=self.hidden, hidden_growth=self.hidden_growth)


ShapedNetworks: TypeAlias = PlainNetworks | ResNetNetworks | ResNet18Networks
"""Architectures that are chosen by name, without looking at the input."""
