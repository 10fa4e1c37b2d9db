"""Conjugate Gaussian experts over fixed features, and networks that answer beside them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from cndpm.experts import neural
from cndpm.experts.bank import Bank
from cndpm.experts.features import FeatureMap
from cndpm.experts.features.views import Jitter
from cndpm.experts.gaussian import GaussianBank, GaussianRegressionBank, RangedGaussianBank
from cndpm.model.settings.architecture import AutoNetworks, Training
from cndpm.model.settings.facts import CustomDensity, CustomPredictor, Facts, Section
from cndpm.model.settings.features import AutoFeatures, Backbone, Fourier, Identity, OwnFeatures, Patches
from cndpm.model.settings.network_kinds import NetworkPredictor

_CHANNELS = 32  # of the first stage of a residual network, for colour images
_MIN_SHARE = 0.1  # of a batch, for the network of an expert to learn from it


class Companions(Section):
    """Settings of the networks beside Gaussian experts: their shape, how they learn and how they are weighed."""

    names_are_global: ClassVar[bool] = False

    hidden: int = Field(default=64, ge=1, description="units per layer of a fully connected network")
    sharing: bool = Field(default=False, description="lateral connections to the features of earlier networks")
    lr: float = Field(default=1e-3, gt=0, description="Adam's learning rate")
    sleep_steps: int = Field(default=200, ge=0, description="steps on the memory that founds an expert")
    wake_steps: int = Field(default=1, ge=1, description="steps for every batch learned")
    content: float = Field(
        default=0.03,
        ge=0,
        description="no step for a batch whose labels the network predicted with a mean loss below this",
    )
    batch_size: int = Field(default=64, ge=1, le=1 << 16, description="samples per step")
    n_recent: int = Field(default=500, ge=1, description="the latest samples kept, from which these steps draw")
    average: float = Field(default=300.0, gt=1, description="steps over which weights are averaged to answer")
    horizon: float = Field(
        default=1000.0, gt=1, description="samples until evidence for or against a predictor has faded to 1/e"
    )

    def beside(self, gaussians: GaussianBank, facts: Facts) -> Bank:
        """Puts networks beside Gaussians."""
        from cndpm.experts.combined import CombinedBank  # here: without networks none are imported

        return CombinedBank(
            gaussians,
            self._networks(facts),
            # Images are shifted, and mirrored where the first memory admits it.
            jitter=Jitter() if len(facts.input_shape) == 3 else None,
            n_recent=self.n_recent,
            wake_steps=self.wake_steps,
            content=self.content,
            batch_size=self.batch_size,
            horizon=self.horizon,
            seed=facts.seed,
            device=facts.device,
        )

    def _networks(self, facts: Facts) -> neural.NeuralBank:
        networks = AutoNetworks(
            hidden=self.hidden, hidden_growth=self.hidden, channels=_CHANNELS, channel_growth=_CHANNELS
        ).resolved(facts.input_shape)
        training = Training(
            density_sleep_steps=0,
            predictor_lr=self.lr,
            predictor_sleep_steps=self.sleep_steps,
            sleep_batch_size=self.batch_size,
        )
        return neural.NeuralBank(
            lambda **_: neural.NoDensity(),
            self._averaging(NetworkPredictor().maker(facts, networks, closed=False)),
            density_training=training.of_densities(),
            predictor_training=training.of_predictors(),
            n_classes=facts.n_classes or 0,
            sharing=self.sharing,
            min_share=_MIN_SHARE,
            seed=facts.seed,
            device=facts.device,
        )

    def _averaging(self, make: neural.PredictorMaker) -> neural.PredictorMaker:
        def make_averaged(*, first: bool, lateral_widths: tuple[int, ...], n_classes: int) -> neural.Predictor:
            made = make(first=first, lateral_widths=lateral_widths, n_classes=n_classes)
            return neural.AveragedPredictor(made, horizon=self.average)

        return make_averaged


class GaussiansAlone(Section):
    """Has Gaussian experts answer by themselves."""

    kind: Literal["gaussian"] = Field(default="gaussian", description="the Gaussians answer by themselves")

    def complete(self, gaussians: GaussianBank, facts: Facts) -> Bank:
        """Returns the Gaussians."""
        return gaussians


class GaussiansAndNetworks(Section):
    """Puts a network beside the Gaussians of every expert; their answers are pooled by evidence."""

    kind: Literal["both"] = Field(
        default="both", description="a network beside the Gaussians of every expert, pooled by evidence; needs labels"
    )
    companions: Companions = Field(default=Companions(), description="the networks")

    def complete(self, gaussians: GaussianBank, facts: Facts) -> Bank:
        """Puts networks beside the Gaussians."""
        return self.companions.beside(gaussians, facts)


class GaussianExperts(Section):
    """Experts in closed form: learned by addition, founded in one step."""

    kind: Literal["gaussian"] = Field(default="gaussian", description="conjugate Gaussians over fixed features")
    features: AutoFeatures | Identity | Fourier | Patches | Backbone | OwnFeatures = Field(
        default=AutoFeatures(), discriminator="kind", description="the space that the Gaussians live in"
    )
    covariance: Literal["auto", "shared", "own"] = Field(
        default="auto", description="one for all, or one each; 'auto': shared with labels, own without"
    )
    classifier: GaussiansAlone | GaussiansAndNetworks = Field(
        default=GaussiansAlone(), discriminator="kind", description="what answers for class labels"
    )

    def build(
        self,
        facts: Facts,
        *,
        density: CustomDensity | None = None,
        predictor: CustomPredictor | None = None,
        feature_map: FeatureMap | None = None,
    ) -> Bank:
        """Makes a bank without experts; a feature map takes the place of `features`, and other parts are refused."""
        for name, part in (("density", density), ("predictor", predictor)):
            if part is not None:
                raise ValueError(
                    f"a {name} of one's own is for experts='neural'; got experts='gaussian'. Set experts='neural', or "
                    "leave it out."
                )
        features = feature_map or self.features.build(facts)
        if facts.target == "values":
            return GaussianRegressionBank(features, seed=facts.seed, device=facts.device)
        covariance = self.covariance
        if covariance == "auto":
            covariance = "own" if facts.target == "none" else "shared"
        kind = RangedGaussianBank if facts.keeps_latest and covariance == "shared" else GaussianBank
        bank = kind(
            features,
            n_classes=facts.n_classes,
            covariance=covariance,
            for_classes=facts.target == "classes",
            seed=facts.seed,
            device=facts.device,
        )
        return self.classifier.complete(bank, facts)
