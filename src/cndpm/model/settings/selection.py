"""Settings of selection: the model that decides which neural expert learns a sample, and what is new."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cndpm.experts.bank import Bank
from cndpm.experts.composite import SelectedBank
from cndpm.experts.features import FeatureMap
from cndpm.experts.gaussian import GaussianBank
from cndpm.experts.neural.neural_bank import NeuralBank
from cndpm.model.settings.facts import Facts
from cndpm.model.settings.features import AutoFeatures, Backbone, Fourier, Identity, OwnFeatures, Patches
from cndpm.model.settings.section import Section


class DensitySelection(Section):
    """Selects by the experts' own densities and predictors, as in the paper."""

    kind: Literal["density"] = Field(default="density", description="the experts themselves")

    def complete(self, networks: NeuralBank, facts: Facts, feature_map: FeatureMap | None) -> Bank:
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

    def complete(self, networks: NeuralBank, facts: Facts, feature_map: FeatureMap | None) -> Bank:
        """Puts Gaussians that select beside the networks."""
        features = feature_map or self.features.build(facts)
        gaussians = GaussianBank(features, n_classes=None, covariance="own", seed=facts.seed, device=facts.device)
        return SelectedBank(gaussians, networks)
