"""The densities and the predictors of neural experts."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from cndpm.experts import neural
from cndpm.model.settings.architecture import PlainNetworks, ShapedNetworks
from cndpm.model.settings.facts import CustomDensity, CustomPredictor, Facts, ImportPath, Section, imported

_N_COMPONENTS = 10  # logistics that an 8-bit pixel is a mixture of
_DROPOUT = 0.1


class Variational(Section):
    """Chooses the paper's density, a variational autoencoder."""

    kind: Literal["vae"] = Field(default="vae", description="a variational autoencoder, as in the paper")
    latent_dim: int = Field(default=16, ge=1, description="dimension of the code")
    likelihood: neural.LikelihoodName = Field(default="unit-gaussian", description="p(x | code)")
    min_variance: float = Field(default=1e-4, gt=0, description="a learned variance of p(x | code) does not fall below")
    variance_lr_factor: float = Field(
        default=1.0, gt=0, description="multiplies density_lr for a learned variance, which has a longer way to go"
    )
    n_latent_samples: int = Field(default=16, ge=1, description="latent samples when a density is evaluated")
    n_train_latent_samples: int | None = Field(
        default=None, ge=1, description="latent samples in training; by default as many"
    )
    density_channels: int = Field(
        default=32, ge=1, description="channels of the first layer, where the density is convolutional"
    )
    density_channel_growth: int = Field(default=4, ge=1, description="channels that each later expert adds to it")

    def maker(self, input_shape: tuple[int, ...], networks: ShapedNetworks) -> neural.DensityMaker:
        """Returns a function that makes the density of an expert."""

        def make(*, first: bool, lateral_widths: tuple[int, ...]) -> neural.Density:
            return neural.VAE(
                input_shape,
                latent_dim=self.latent_dim,
                likelihood=self.likelihood,
                variance_rate=self.variance_lr_factor,
                min_variance=self.min_variance,
                n_samples=self.n_latent_samples,
                n_train_samples=self.n_train_latent_samples or self.n_latent_samples,
                lateral_widths=lateral_widths,
                **self._columns(input_shape, networks, lateral_widths, first=first),
            )

        return make

    def _columns(
        self, input_shape: tuple[int, ...], networks: ShapedNetworks, lateral_widths: tuple[int, ...], *, first: bool
    ) -> dict[str, Any]:
        """Returns what encoder and decoder are made of."""
        if isinstance(networks, PlainNetworks):
            return {"hidden": networks.widths(first=first), "decoder_hidden": networks.widths(first=True)}
        channels = self.density_channels if first else self.density_channel_growth
        return {
            "encoder": neural.LateralCNN(input_shape, channels, lateral_widths),
            "decoder": neural.mirrored_decoder(input_shape, self.density_channels, self.latent_dim),
        }


class Autoregressive(Section):
    """Chooses an exact density of images, pixel by pixel."""

    kind: Literal["autoregressive"] = Field(
        default="autoregressive", description="an exact density of binary or 8-bit images, pixel by pixel"
    )
    likelihood: Literal["bernoulli", "logistic"] = Field(
        default="bernoulli", description="of a pixel: 'bernoulli' for zeros and ones, 'logistic' for 8-bit values / 255"
    )
    density_channels: int = Field(default=32, ge=1, description="channels of every layer")
    density_blocks: int = Field(default=7, ge=0, description="residual blocks")

    def maker(self, input_shape: tuple[int, ...], networks: ShapedNetworks) -> neural.DensityMaker:
        """Returns a function that makes the density of an expert; it shares nothing, and has the same shape for all."""

        def make(**_: Any) -> neural.Density:
            return neural.AutoregressiveDensity(
                input_shape,
                pixel=self._pixel(input_shape),
                channels=self.density_channels,
                n_blocks=self.density_blocks,
                dropout=_DROPOUT,
            )

        return make

    def _pixel(self, input_shape: tuple[int, ...]) -> neural.Pixel:
        if self.likelihood == "logistic":
            return neural.LogisticPixel(input_shape[0], n_components=_N_COMPONENTS)
        return neural.BernoulliPixel()


class OwnDensity(Section):
    """Names a density of one's own; nothing is imported before it is needed."""

    bare: ClassVar[str] = "density_class"

    kind: Literal["own"] = Field(default="own", description="a class of one's own; its import path may stand alone")
    density_class: ImportPath = Field(
        description="package.module:Class, called with input_shape and lateral_widths, that makes a Density"
    )

    def maker(self, input_shape: tuple[int, ...], networks: ShapedNetworks) -> neural.DensityMaker:
        """Returns a function that makes the density of an expert."""
        return maker_of(imported(self.density_class, "density_class"), input_shape)


def maker_of(density: CustomDensity, input_shape: tuple[int, ...]) -> neural.DensityMaker:
    """Returns a function that makes densities of a class."""

    def make(*, lateral_widths: tuple[int, ...], **_: Any) -> neural.Density:
        return density(input_shape, lateral_widths=lateral_widths)

    return make


class NetworkPredictor(Section):
    """Chooses a network of the chosen architecture, for class labels or real values."""

    kind: Literal["network"] = Field(default="network", description="a network of the chosen architecture")
    temperature: float = Field(default=0.01, gt=0, description="of the predictor, in the value that routing sees")
    unseen_probability: float = Field(
        default=1e-3, gt=0, lt=1, description="of all classes an expert has never seen, where classes are discovered"
    )

    def maker(self, facts: Facts, networks: ShapedNetworks, *, closed: bool) -> neural.PredictorMaker:
        """Returns a function that makes the predictor of an expert."""

        def make(*, first: bool, lateral_widths: tuple[int, ...], n_classes: int) -> neural.Predictor:
            column: dict[str, Any] = {
                "lateral_widths": lateral_widths,
                "trunk": networks.trunk(facts.input_shape, lateral_widths, first=first),
                "temperature": self.temperature,
            }
            if isinstance(networks, PlainNetworks):
                column["hidden"] = networks.widths(first=first)
            if facts.target == "values":
                return neural.Regressor(facts.input_shape, facts.n_outputs, **column)
            unseen = self.unseen_probability
            return neural.Classifier(facts.input_shape, n_classes, unseen_probability=unseen, closed=closed, **column)

        return make


class OwnPredictor(Section):
    """Names a predictor of one's own; nothing is imported before it is needed."""

    bare: ClassVar[str] = "predictor_class"

    kind: Literal["own"] = Field(default="own", description="a class of one's own; its import path may stand alone")
    predictor_class: ImportPath = Field(
        description="package.module:Class, called with input_shape, n_outputs, lateral_widths, that makes a Predictor"
    )

    def maker(self, facts: Facts, networks: ShapedNetworks, *, closed: bool) -> neural.PredictorMaker:
        """Returns a function that makes the predictor of an expert."""
        return predictor_maker_of(imported(self.predictor_class, "predictor_class"), facts)


def predictor_maker_of(predictor: CustomPredictor, facts: Facts) -> neural.PredictorMaker:
    """Returns a function that makes predictors of a class."""

    def make(*, lateral_widths: tuple[int, ...], n_classes: int, **_: Any) -> neural.Predictor:
        n_outputs = n_classes if facts.target == "classes" else facts.n_outputs
        return predictor(facts.input_shape, n_outputs, lateral_widths=lateral_widths)

    return make
