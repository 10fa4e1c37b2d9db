"""The fixed features that Gaussians live on."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator
from torch import nn

from cndpm.experts.features import (
    FeatureMap,
    FourierFeatures,
    IdentityFeatures,
    ModuleFeatures,
    PatchFeatures,
    PrincipalFeatures,
    backbones,
)
from cndpm.experts.features.backbones import BACKBONES
from cndpm.model.settings.facts import Facts, ImportPath, Section, imported
from cndpm.names import UnknownNameError

_N_PATCHES = 128
_N_PRINCIPAL = 128
_N_FOURIER = {"classes": 256, "values": 64, "none": 256}

Amount: TypeAlias = Annotated[int, Field(ge=1)] | Literal["auto"]

_OF_PATCHES = "filters of each of three patch sizes; 'auto': 128, fewer for small images"
_OF_FOURIER = "random features; 'auto': 256, and 64 for real-valued targets"


class Identity(Section):
    """Chooses the samples as they are, standardised."""

    kind: Literal["identity"] = Field(default="identity", description="standardised samples as they are")

    def build(self, facts: Facts) -> FeatureMap:
        """Makes the map."""
        return IdentityFeatures()


class Fourier(Section):
    """Chooses random Fourier features beside the sample itself."""

    kind: Literal["fourier"] = Field(default="fourier", description="random Fourier features beside the sample")
    n_fourier: Amount = Field(default="auto", description=_OF_FOURIER)

    def build(self, facts: Facts) -> FeatureMap:
        n_features = _N_FOURIER[facts.target] if self.n_fourier == "auto" else self.n_fourier
        return FourierFeatures(n_features)


class Patches(Section):
    """Chooses responses to patches of images; without labels their principal directions."""

    kind: Literal["patches"] = Field(default="patches", description="responses to patches, for images")
    n_patches: Amount = Field(default="auto", description=_OF_PATCHES)

    def build(self, facts: Facts) -> FeatureMap:
        if len(facts.input_shape) != 3:
            raise ValueError(
                "features='patches' needs images (channels, height, width); got samples of shape "
                f"{facts.input_shape}. Use features='fourier' or 'identity', or give the images their shape."
            )
        # Small images have little to tell apart: by default no more filters of a size than a sixth of the values.
        default = min(_N_PATCHES, max(4, math.prod(facts.input_shape) // 6))
        patches = PatchFeatures(default if self.n_patches == "auto" else self.n_patches)
        # Without labels every expert keeps a covariance of its own, which only few features allow.
        return PrincipalFeatures(patches, _N_PRINCIPAL) if facts.target == "none" else patches


class Backbone(Section):
    """Chooses a frozen pretrained network, for images."""

    kind: Literal["backbone"] = Field(default="backbone", description="a frozen pretrained network, for images")
    backbone: str = Field(default="efficientnet-lite0", description=f"the network: {', '.join(BACKBONES)}")
    weights: str | None = Field(
        default=None, description="a file of weights of one's own; otherwise those that come with cndpm[backbones]"
    )
    image_size: Annotated[int, Field(ge=32, le=1024)] | Literal["auto"] = Field(
        default="auto", description="edge that images are scaled to; 'auto': as the network was trained"
    )
    n_expanded: Annotated[int, Field(ge=0, le=32768)] = Field(
        default=3400, description="rectified random projections beside the network's outputs; 0 for none"
    )

    @field_validator("backbone")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in BACKBONES:
            raise UnknownNameError("backbone", name, BACKBONES)
        return name

    def build(self, facts: Facts) -> FeatureMap:
        if len(facts.input_shape) != 3 or facts.input_shape[0] not in (1, 3):
            raise ValueError(
                "features='backbone' needs images (1 or 3 channels, height, width); got samples of shape "
                f"{facts.input_shape}. Give the images their shape with input_shape."
            )
        image_size = None if self.image_size == "auto" else self.image_size
        n_expanded = 0 if facts.target == "none" else self.n_expanded
        features = backbones.BackboneFeatures(
            self.backbone, weights=self.weights, image_size=image_size, n_expanded=n_expanded
        )
        # Without labels every expert keeps a covariance of its own, which only few features allow.
        return PrincipalFeatures(features, _N_PRINCIPAL) if facts.target == "none" else features


class AutoFeatures(Section):
    """Chooses by the samples: patches for images, Fourier features for labelled rows, other rows as they are."""

    kind: Literal["auto"] = Field(
        default="auto", description="patches for images, Fourier features for labelled rows, other rows as they are"
    )
    n_patches: Amount = Field(default="auto", description=_OF_PATCHES)
    n_fourier: Amount = Field(default="auto", description=_OF_FOURIER)

    def build(self, facts: Facts) -> FeatureMap:
        if len(facts.input_shape) == 3:
            return Patches(n_patches=self.n_patches).build(facts)
        return Identity().build(facts) if facts.target == "none" else Fourier(n_fourier=self.n_fourier).build(facts)


class OwnFeatures(Section):
    """Names a feature map or torch module of one's own; nothing is imported before it is needed."""

    bare: ClassVar[str] = "feature_class"

    kind: Literal["own"] = Field(default="own", description="a class of one's own; its import path may stand alone")
    feature_class: ImportPath = Field(
        description="package.module:Class of a FeatureMap or torch module that is made without arguments"
    )

    def build(self, facts: Facts) -> FeatureMap:
        made = imported(self.feature_class, "feature_class")()
        if isinstance(made, nn.Module):
            return ModuleFeatures(made)
        if not isinstance(made, FeatureMap):
            raise ValueError(
                f"feature_class={self.feature_class!r} must make a FeatureMap or a torch module; got {made!r}"
            )
        return made
