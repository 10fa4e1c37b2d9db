"""Builds the bank of experts that the settings describe."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypedDict, Unpack

import torch
from torch import nn

from cndpm.experts.bank import Bank
from cndpm.experts.combined import CombinedBank
from cndpm.experts.features import FeatureMap, FourierFeatures, IdentityFeatures, PatchFeatures, PrincipalFeatures
from cndpm.experts.features.jitter import Jitter
from cndpm.experts.gaussian import GaussianBank, GaussianRegressionBank
from cndpm.experts.neural.autoregressive import AutoregressiveDensity
from cndpm.experts.neural.averaged import AveragedPredictor
from cndpm.experts.neural.convolutional import LateralCNN, LateralResNet, mirrored_decoder
from cndpm.experts.neural.lateral import Column
from cndpm.experts.neural.neural_bank import DensityMaker, NeuralBank, PredictorMaker
from cndpm.experts.neural.parts import Density, NoDensity, Predictor
from cndpm.experts.neural.pixels import BernoulliPixel, LogisticPixel, Pixel
from cndpm.experts.neural.predictors import Classifier, Regressor
from cndpm.experts.neural.vae import VAE
from cndpm.experts.selected import SelectedBank
from cndpm.model.founding import AlwaysFound, EarnedFounding, Founding
from cndpm.model.learned_level import LearnedLevel
from cndpm.model.novelty import FixedLevel, Novelty
from cndpm.model.settings import CNDPMSettings

__all__ = ["CustomDensity", "CustomPredictor", "make_bank", "make_founding", "make_novelty"]


_N_PATCHES = 128
_N_PRINCIPAL = 128


class CustomDensity(Protocol):
    """A density class of the user's own."""

    def __call__(self, input_shape: tuple[int, ...], *, lateral_widths: tuple[int, ...]) -> Density:
        """Makes one expert's density."""


class CustomPredictor(Protocol):
    """A predictor class of the user's own."""

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int, *, lateral_widths: tuple[int, ...]) -> Predictor:
        """Makes one expert's predictor; `n_outputs` are the classes known so far, or the number of targets."""


def make_novelty(settings: CNDPMSettings, at_end_of_task: Callable[[], None]) -> Novelty:
    """Makes the part that routes samples."""
    if settings.log_alpha == "auto":
        return LearnedLevel(novelty_rate=settings.novelty_rate, window=settings.novelty_window)
    return FixedLevel(settings.log_alpha)


def make_founding(settings: CNDPMSettings) -> Founding:
    """Makes the part that turns memories into experts."""
    return EarnedFounding(for_labels=settings.target == "classes") if settings.log_alpha == "auto" else AlwaysFound()


def make_bank(
    settings: CNDPMSettings,
    *,
    input_shape: tuple[int, ...],
    n_classes: int | None,
    seed: int,
    device: torch.device,
    density: CustomDensity | None = None,
    predictor: CustomPredictor | None = None,
    feature_map: FeatureMap | None = None,
) -> Bank:
    """A bank without experts; `n_classes` is None where classes are discovered."""
    made: _Facts = {"input_shape": input_shape, "n_classes": n_classes, "seed": seed, "device": device}
    if settings.experts == "gaussian":
        if density is not None or predictor is not None:
            raise ValueError("a density or predictor of one's own is for experts='neural'; got experts='gaussian'")
        return _gaussian_bank(settings, feature_map, **made)
    if feature_map is not None and settings.selection != "gaussian":
        raise ValueError("a feature map is for experts='gaussian'; got experts='neural'")
    bank = _neural_bank(settings, density, predictor, **made)
    if settings.selection == "density":
        return bank
    if settings.target != "none":
        raise ValueError(
            f"selection='gaussian' is for unlabelled streams (target='none'); got target={settings.target!r}. "
            "With labels, experts='gaussian' select and answer by themselves."
        )
    return SelectedBank(_gaussian_bank(settings, feature_map, **made), bank)


class _Facts(TypedDict):
    """What every bank is told of its stream."""

    input_shape: tuple[int, ...]
    n_classes: int | None
    seed: int
    device: torch.device


def _gaussian_bank(settings: CNDPMSettings, feature_map: FeatureMap | None, **facts: Unpack[_Facts]) -> Bank:
    features = feature_map or _feature_map(settings, facts["input_shape"])
    seed, device = facts["seed"], facts["device"]
    if settings.target == "values":
        return GaussianRegressionBank(features, seed=seed, device=device)
    covariance = settings.covariance
    if covariance == "auto":
        covariance = "own" if settings.target == "none" else "shared"
    gaussians = GaussianBank(
        features,
        n_classes=facts["n_classes"],
        covariance=covariance,
        for_classes=settings.target == "classes",
        seed=seed,
        device=device,
    )
    return _combined_bank(gaussians, settings, **facts) if settings.has_networks(facts["input_shape"]) else gaussians


def _neural_bank(
    settings: CNDPMSettings,
    density: CustomDensity | None,
    predictor: CustomPredictor | None,
    **facts: Unpack[_Facts],
) -> NeuralBank:
    input_shape, n_classes = facts["input_shape"], facts["n_classes"]
    return NeuralBank(
        _density_maker(settings, input_shape, density),
        None
        if settings.target == "none"
        else _predictor_maker(settings, input_shape, closed=n_classes is not None, custom=predictor),
        density_training=settings.density_training(),
        predictor_training=settings.predictor_training(),
        n_classes=n_classes or 0,
        sharing=settings.sharing,
        inheriting=settings.inherit,
        standardise=settings.standardise,
        min_share=settings.min_share,
        seed=facts["seed"],
        device=facts["device"],
    )


def _combined_bank(gaussians: GaussianBank, settings: CNDPMSettings, **facts: Unpack[_Facts]) -> CombinedBank:
    input_shape, seed, device = facts["input_shape"], facts["seed"], facts["device"]
    own, network_settings = settings.companions, settings.of_companions()
    make_predictor = _predictor_maker(network_settings, input_shape, closed=False, custom=None)
    networks = NeuralBank(
        lambda **_: NoDensity(),
        make_predictor if own.average is None else _averaging(make_predictor, own.average),
        density_training=network_settings.density_training(),
        predictor_training=network_settings.predictor_training(),
        n_classes=facts["n_classes"] or 0,
        sharing=own.sharing,
        min_share=settings.min_share,
        seed=seed,
        device=device,
    )
    return CombinedBank(
        gaussians,
        networks,
        jitter=Jitter() if own.augment and len(input_shape) == 3 else None,
        n_recent=own.n_recent,
        wake_steps=own.wake_steps,
        content=own.content,
        batch_size=own.batch_size,
        horizon=own.horizon,
        seed=seed,
        device=device,
    )


def _averaging(make: PredictorMaker, horizon: float) -> PredictorMaker:
    return lambda **shape: AveragedPredictor(make(**shape), horizon=horizon)


def _feature_map(settings: CNDPMSettings, input_shape: tuple[int, ...]) -> FeatureMap:
    labelled, is_image = settings.target != "none", len(input_shape) == 3
    name = settings.features
    if name == "auto":
        name = "patches" if is_image else "fourier" if labelled else "identity"
    if name == "identity":
        return IdentityFeatures()
    if name == "fourier":
        return FourierFeatures(settings.n_fourier, include_input=True)
    if not is_image:
        raise ValueError(f"features='patches' needs images (channels, height, width); got {input_shape}")
    # Small images have little to tell apart: by default no more filters of a size than a sixth of the values.
    default = min(_N_PATCHES, max(4, math.prod(input_shape) // 6))
    patches = PatchFeatures(default if settings.n_patches == "auto" else settings.n_patches)
    # Without labels every expert keeps a covariance of its own, which only few features allow.
    return patches if labelled else PrincipalFeatures(patches, _N_PRINCIPAL)


def _density_maker(settings: CNDPMSettings, input_shape: tuple[int, ...], custom: CustomDensity | None) -> DensityMaker:
    def make(*, first: bool, lateral_widths: tuple[int, ...]) -> Density:
        if custom is not None:
            return custom(input_shape, lateral_widths=lateral_widths)
        if settings.density == "autoregressive":
            return AutoregressiveDensity(
                input_shape,
                pixel=_pixel(settings, input_shape),
                channels=settings.density_channels,
                n_blocks=settings.density_blocks,
                dropout=settings.density_dropout,
            )
        encoder: Column | None = None
        decoder: nn.Sequential | None = None
        if settings.resolved_architecture(input_shape) != "mlp":
            channels = settings.density_channels if first else settings.density_channel_growth
            encoder = LateralCNN(input_shape, channels, lateral_widths)
            decoder = mirrored_decoder(input_shape, settings.density_channels, settings.latent_dim)
        return VAE(
            input_shape,
            encoder=encoder,
            decoder=decoder,
            hidden=settings.widths(first=first),
            decoder_hidden=settings.widths(first=True),
            latent_dim=settings.latent_dim,
            likelihood=settings.likelihood,
            variance_rate=settings.variance_lr_factor,
            min_variance=settings.min_variance,
            n_samples=settings.n_latent_samples,
            n_train_samples=settings.n_train_latent_samples or settings.n_latent_samples,
            bound=settings.bound,
            lateral_widths=lateral_widths,
        )

    return make


def _pixel(settings: CNDPMSettings, input_shape: tuple[int, ...]) -> Pixel:
    if settings.likelihood == "logistic":
        return LogisticPixel(input_shape[0], n_components=settings.density_components)
    return BernoulliPixel()


def _predictor_maker(
    settings: CNDPMSettings, input_shape: tuple[int, ...], *, closed: bool, custom: CustomPredictor | None
) -> PredictorMaker:
    def make(*, first: bool, lateral_widths: tuple[int, ...], n_classes: int) -> Predictor:
        n_outputs = n_classes if settings.target == "classes" else settings.n_outputs
        if custom is not None:
            return custom(input_shape, n_outputs, lateral_widths=lateral_widths)
        column: dict[str, Any] = {
            "hidden": settings.widths(first=first),
            "lateral_widths": lateral_widths,
            "trunk": _residual_trunk(settings, input_shape, lateral_widths, first=first),
            "temperature": settings.temperature,
        }
        if settings.target == "values":
            return Regressor(input_shape, n_outputs, **column)
        return Classifier(
            input_shape, n_outputs, unseen_probability=settings.unseen_probability, closed=closed, **column
        )

    return make


def _residual_trunk(
    settings: CNDPMSettings, input_shape: tuple[int, ...], lateral_widths: tuple[int, ...], *, first: bool
) -> LateralResNet | None:
    architecture = settings.resolved_architecture(input_shape)
    if architecture == "mlp":
        return None
    channels = settings.channels if first else settings.channel_growth
    n_blocks = 2 if architecture == "resnet18" else 1
    return LateralResNet(input_shape, channels, n_blocks=n_blocks, lateral_widths=lateral_widths)
