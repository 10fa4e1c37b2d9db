"""The densities of neural experts."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from cndpm.experts.neural.autoregressive import AutoregressiveDensity
from cndpm.experts.neural.convolutional import LateralCNN, mirrored_decoder
from cndpm.experts.neural.likelihoods import LikelihoodName
from cndpm.experts.neural.parts import Density, DensityMaker
from cndpm.experts.neural.pixels import BernoulliPixel, LogisticPixel, Pixel
from cndpm.experts.neural.vae import VAE, Bound
from cndpm.model.settings.architecture import PlainNetworks, ShapedNetworks
from cndpm.model.settings.facts import CustomDensity
from cndpm.model.settings.import_paths import ImportPath, imported
from cndpm.model.settings.section import Section

_N_COMPONENTS = 10  # logistics that an 8-bit pixel is a mixture of
_DROPOUT = 0.1


class Variational(Section):
    """Chooses the paper's density, a variational autoencoder."""

    kind: Literal["vae"] = Field(default="vae", description="a variational autoencoder, as in the paper")
    latent_dim: int = Field(default=16, ge=1, description="dimension of the code")
    likelihood: LikelihoodName = Field(default="unit-gaussian", description="p(x | code)")
    min_variance: float = Field(default=1e-4, gt=0, description="a learned variance of p(x | code) does not fall below")
    variance_lr_factor: float = Field(
        default=1.0, gt=0, description="multiplies density_lr for a learned variance, which has a longer way to go"
    )
    n_latent_samples: int = Field(default=16, ge=1, description="latent samples when a density is evaluated")
    n_train_latent_samples: int | None = Field(
        default=None, ge=1, description="latent samples in training; by default as many"
    )
    bound: Bound = Field(default="elbo", description="mean of the ELBOs, or the importance-weighted bound")
    density_channels: int = Field(
        default=32, ge=1, description="channels of the first layer, where the density is convolutional"
    )
    density_channel_growth: int = Field(default=4, ge=1, description="channels that each later expert adds to it")

    def maker(self, input_shape: tuple[int, ...], networks: ShapedNetworks) -> DensityMaker:
        """Returns a function that makes the density of an expert."""

        def make(*, first: bool, lateral_widths: tuple[int, ...]) -> Density:
            return VAE(
                input_shape,
                latent_dim=self.latent_dim,
                likelihood=self.likelihood,
                variance_rate=self.variance_lr_factor,
                min_variance=self.min_variance,
                n_samples=self.n_latent_samples,
                n_train_samples=self.n_train_latent_samples or self.n_latent_samples,
                bound=self.bound,
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
            "encoder": LateralCNN(input_shape, channels, lateral_widths),
            "decoder": mirrored_decoder(input_shape, self.density_channels, self.latent_dim),
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

    def maker(self, input_shape: tuple[int, ...], networks: ShapedNetworks) -> DensityMaker:
        """Returns a function that makes the density of an expert; it shares nothing, and has the same shape for all."""

        def make(**_: Any) -> Density:
            return AutoregressiveDensity(
                input_shape,
                pixel=self._pixel(input_shape),
                channels=self.density_channels,
                n_blocks=self.density_blocks,
                dropout=_DROPOUT,
            )

        return make

    def _pixel(self, input_shape: tuple[int, ...]) -> Pixel:
        if self.likelihood == "logistic":
            return LogisticPixel(input_shape[0], n_components=_N_COMPONENTS)
        return BernoulliPixel()


class OwnDensity(Section):
    """Names a density of one's own; nothing is imported before it is needed."""

    bare: ClassVar[str] = "density_class"

    kind: Literal["own"] = Field(default="own", description="a class of one's own; its import path may stand alone")
    density_class: ImportPath = Field(
        description="package.module:Class, called with input_shape and lateral_widths, that makes a Density"
    )

    def maker(self, input_shape: tuple[int, ...], networks: ShapedNetworks) -> DensityMaker:
        """Returns a function that makes the density of an expert."""
        return maker_of(imported(self.density_class, "density_class"), input_shape)


def maker_of(density: CustomDensity, input_shape: tuple[int, ...]) -> DensityMaker:
    """Returns a function that makes densities of a class."""

    def make(*, lateral_widths: tuple[int, ...], **_: Any) -> Density:
        return density(input_shape, lateral_widths=lateral_widths)

    return make
