"""Conjugate Gaussian experts over fixed features."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from cndpm.experts.bank import Bank
from cndpm.experts.features import FeatureMap
from cndpm.experts.gaussian import GaussianBank, GaussianRegressionBank
from cndpm.model.settings.companions import AutoCompanions, GaussiansAlone, GaussiansAndNetworks
from cndpm.model.settings.facts import CustomDensity, CustomPredictor, Facts, Target
from cndpm.model.settings.features import AutoFeatures, Backbone, Fourier, Identity, OwnFeatures, Patches
from cndpm.model.settings.section import Section

__all__ = ["GaussianExperts"]


class GaussianExperts(Section):
    """Experts in closed form: learned by addition, founded in one step.

    Example:
        >>> facts = {"n_outputs": 1, "n_classes": 3, "seed": 0, "device": torch.device("cpu")}
        >>> bank = GaussianExperts(n_fourier=16).build(target="classes", input_shape=(4,), **facts)
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
        *,
        target: Target,
        n_outputs: int,
        input_shape: tuple[int, ...],
        n_classes: int | None,
        seed: int,
        device: torch.device,
        density: CustomDensity | None = None,
        predictor: CustomPredictor | None = None,
        feature_map: FeatureMap | None = None,
    ) -> Bank:
        """Makes a bank without experts.

        Args:
            target: What y is.
            n_outputs: Number of real-valued targets.
            input_shape: Shape of one sample.
            n_classes: Number of classes; None where they are discovered.
            seed: Determines every random choice.
            device: Where everything lives.
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
        facts = Facts(target, n_outputs, input_shape, n_classes, seed, device)
        features = feature_map or self.features.build(facts)
        if target == "values":
            return GaussianRegressionBank(features, seed=seed, device=device)
        covariance = self.covariance
        if covariance == "auto":
            covariance = "own" if target == "none" else "shared"
        bank = GaussianBank(
            features,
            n_classes=n_classes,
            covariance=covariance,
            for_classes=target == "classes",
            seed=seed,
            device=device,
        )
        return self.classifier.complete(bank, facts)
