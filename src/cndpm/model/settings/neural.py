"""Experts made of networks, as in the paper, and what decides which of them learns a sample."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from cndpm.experts import neural
from cndpm.experts.bank import Bank
from cndpm.experts.composite import SelectedBank
from cndpm.experts.features import FeatureMap
from cndpm.experts.gaussian import GaussianBank
from cndpm.model.settings.architecture import AutoNetworks, PlainNetworks, ResNet18Networks, ResNetNetworks, Training
from cndpm.model.settings.facts import CustomDensity, CustomPredictor, Facts, Section
from cndpm.model.settings.features import AutoFeatures, Backbone, Fourier, Identity, OwnFeatures, Patches
from cndpm.model.settings.network_kinds import (
    Autoregressive,
    NetworkPredictor,
    OwnDensity,
    OwnPredictor,
    Variational,
    maker_of,
    predictor_maker_of,
)


class DensitySelection(Section):
    """Selects by the experts' own densities and predictors, as in the paper."""

    kind: Literal["density"] = Field(default="density", description="the experts themselves")

    def complete(self, networks: neural.NeuralBank, facts: Facts, feature_map: FeatureMap | None) -> Bank:
        """Returns the networks."""
        if feature_map is not None:
            raise ValueError(
                "a feature map is for Gaussians; got experts='neural' that select by their own densities. Set "
                "experts='gaussian', or selection='gaussian' for unlabelled data, or leave it out."
            )
        return networks


class GaussianSelection(Section):
    """Selects by a Gaussian over fixed features beside each expert, for unlabelled streams."""

    kind: Literal["gaussian"] = Field(
        default="gaussian", description="a Gaussian over fixed features beside each expert; for target='none'"
    )
    features: AutoFeatures | Identity | Fourier | Patches | Backbone | OwnFeatures = Field(
        default=AutoFeatures(), discriminator="kind", description="the space that these Gaussians live in"
    )

    def complete(self, networks: neural.NeuralBank, facts: Facts, feature_map: FeatureMap | None) -> Bank:
        """Puts Gaussians that select beside the networks."""
        features = feature_map or self.features.build(facts)
        gaussians = GaussianBank(features, n_classes=None, covariance="own", seed=facts.seed, device=facts.device)
        return SelectedBank(gaussians, networks)


class NeuralExperts(Section):
    """Networks trained by gradient; the defaults are those of the paper's Split-MNIST classification."""

    kind: Literal["neural"] = Field(default="neural", description="networks trained by gradient, as in the paper")
    density: Variational | Autoregressive | OwnDensity = Field(
        default=Variational(), discriminator="kind", description="p(x) of an expert"
    )
    predictor: NetworkPredictor | OwnPredictor = Field(
        default=NetworkPredictor(), discriminator="kind", description="p(y | x) of an expert"
    )
    architecture: AutoNetworks | PlainNetworks | ResNetNetworks | ResNet18Networks = Field(
        default=AutoNetworks(), discriminator="kind", description="the shape of predictors and of variational densities"
    )
    selection: DensitySelection | GaussianSelection = Field(
        default=DensitySelection(), discriminator="kind", description="what tells who learns a sample and what is new"
    )
    training: Training = Field(default=Training(), description="how the networks learn")
    sharing: bool = Field(default=True, description="lateral connections to the features of earlier experts")
    inherit: bool = Field(
        default=False, description="whether a density starts as the one that explains its memory best; not with sharing"
    )
    min_share: float = Field(
        default=0.1, ge=0, lt=1, description="an expert is updated when its share of a batch exceeds this"
    )
    standardise: bool = Field(
        default=False, description="whether values are scaled by the statistics of the first memory"
    )

    @model_validator(mode="after")
    def _inherits_what_it_can(self) -> Self:
        if self.sharing and self.inherit:
            raise ValueError(
                "inherit=True needs sharing=False: experts that share features differ in shape, so none can begin as "
                "a copy. Got sharing=True; turn one of both off."
            )
        return self

    @model_validator(mode="after")
    def _channels_are_of_convolutions(self) -> Self:
        if isinstance(self.architecture, PlainNetworks) and isinstance(self.density, Variational):
            for name in ("density_channels", "density_channel_growth"):
                value, default = getattr(self.density, name), Variational.model_fields[name].default
                if value != default:
                    raise ValueError(
                        f"{name} is for convolutional densities; got {name}={value} with architecture='mlp', whose "
                        "densities are fully connected. Leave it out, or choose another architecture."
                    )
        return self

    def build(
        self,
        facts: Facts,
        *,
        density: CustomDensity | None = None,
        predictor: CustomPredictor | None = None,
        feature_map: FeatureMap | None = None,
    ) -> Bank:
        """Makes a bank without experts, of classes in place of `density` and `predictor` where some are given.

        A feature map takes the place of the features that `selection` has, and is refused where it has none.
        """
        shape, closed = facts.input_shape, facts.n_classes is not None
        networks, make_predictor = self.architecture.resolved(shape), None
        if facts.target != "none":
            own = None if predictor is None else predictor_maker_of(predictor, facts)
            make_predictor = own or self.predictor.maker(facts, networks, closed=closed)
        bank = neural.NeuralBank(
            self.density.maker(shape, networks) if density is None else maker_of(density, shape),
            make_predictor,
            density_training=self.training.of_densities(),
            predictor_training=self.training.of_predictors(),
            n_classes=facts.n_classes or 0,
            sharing=self.sharing,
            inheriting=self.inherit,
            standardise=self.standardise,
            min_share=self.min_share,
            seed=facts.seed,
            device=facts.device,
        )
        return self.selection.complete(bank, facts, feature_map)
