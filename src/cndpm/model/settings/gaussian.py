"""Conjugate Gaussian experts over fixed features."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cndpm.experts.bank import Bank
from cndpm.experts.features import FeatureMap
from cndpm.experts.gaussian import GaussianBank, GaussianRegressionBank, RangedGaussianBank
from cndpm.model.settings.companions import AutoCompanions, GaussiansAlone, GaussiansAndNetworks
from cndpm.model.settings.facts import CustomDensity, CustomPredictor, Facts
from cndpm.model.settings.features import AutoFeatures, Backbone, Fourier, Identity, OwnFeatures, Patches
from cndpm.model.settings.section import Section

__all__ = ["GaussianExperts"]


class GaussianExperts(Section):
    """Experts in closed form: learned by addition, founded in one step.

    Example:
        >>> import torch
        >>> bank = GaussianExperts(n_fourier=16).build(Facts("classes", 1, (4,), 3, 0, torch.device("cpu")))
        >>> type(bank).__name__
        'GaussianBank'
    """

    kind: Literal["gaussian"] = Field(default="gaussian", description="conjugate Gaussians over fixed features")
    features: AutoFeatures | Identity | Fourier | Patches | Backbone | OwnFeatures = Field(
        default=AutoFeatures(), discriminator="kind", description="the space that the Gaussians live in"
    )
    covariance: Literal["auto", "shared", "own"] = Field(
        default="auto", description="one for all, or one each; 'auto': shared with labels, own without"
    )
    classifier: GaussiansAlone | GaussiansAndNetworks | AutoCompanions = Field(
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
        """Makes a bank without experts.

        Args:
            facts: Of the stream.
            density: Refused: Gaussians are densities themselves.
            predictor: Refused: Gaussians are predictors themselves.
            feature_map: In place of `features`.
        """
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
        kind = RangedGaussianBank if facts.is_watched and covariance == "shared" else GaussianBank
        bank = kind(
            features,
            n_classes=facts.n_classes,
            covariance=covariance,
            for_classes=facts.target == "classes",
            seed=facts.seed,
            device=facts.device,
        )
        return self.classifier.complete(bank, facts)
