"""The networks of neural experts: their shape, fully connected or residual, and how they learn, asleep and awake."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, cast

from pydantic import Field

from cndpm.experts import neural
from cndpm.model.settings.facts import Section

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


class Training(Section):
    """Sets rates, steps and schedules of densities and predictors."""

    density_lr: float = Field(default=4e-4, gt=0, description="Adam's learning rate of the densities")
    predictor_lr: float = Field(default=1e-4, gt=0, description="Adam's learning rate of the predictors")
    density_wake_lr_factor: float = Field(default=1.0, gt=0, description="multiplies density_lr when an expert wakes")
    predictor_wake_lr_factor: float = Field(
        default=1.0, gt=0, description="multiplies predictor_lr when an expert wakes"
    )
    density_lr_slowdown: int | None = Field(
        default=None,
        ge=1,
        description="density_lr falls as 1 / sqrt(1 + steps / this), counted anew when an expert wakes; null: not",
    )
    density_sleep_steps: int = Field(default=8000, ge=0, description="steps of a density's sleep, at most")
    predictor_sleep_steps: int = Field(default=2000, ge=0, description="steps of a predictor's sleep, at most")
    sleep_batch_size: int = Field(default=50, ge=1, le=1 << 16, description="samples per step of a sleep")
    sleep_until: Literal["steps", "converged"] = Field(
        default="steps", description="take all steps, or end when converged"
    )
    sleep_check_every: int = Field(
        default=100, ge=1, description="steps between looks at the held-out part of the memory, until converged"
    )
    sleep_patience: int = Field(default=5, ge=1, description="looks without improvement that end a sleep")
    weight_decay: float = Field(default=1e-5, ge=0, description="squared-norm penalty while asleep")
    clip: float = Field(default=0.5, gt=0, description="gradients are clipped by value")

    def of_densities(self) -> neural.PartTraining:
        """Returns how densities learn."""
        slowdown = self.density_lr_slowdown
        return self._of(self.density_lr, self.density_wake_lr_factor, self.density_sleep_steps, slowdown)

    def of_predictors(self) -> neural.PartTraining:
        """Returns how predictors learn."""
        return self._of(self.predictor_lr, self.predictor_wake_lr_factor, self.predictor_sleep_steps, None)

    def _of(self, lr: float, wake_lr_factor: float, n_steps: int, slowdown: int | None) -> neural.PartTraining:
        return neural.PartTraining(
            lr=lr,
            wake_lr_factor=wake_lr_factor,
            clip=self.clip,
            weight_decay=self.weight_decay,
            slowdown=slowdown,
            sleep=neural.LessonSchedule(
                max_steps=n_steps,
                batch_size=self.sleep_batch_size,
                until=self.sleep_until,
                check_every=self.sleep_check_every,
                patience=self.sleep_patience,
            ),
        )
