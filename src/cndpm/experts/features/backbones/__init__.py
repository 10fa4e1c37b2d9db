"""Frozen pretrained networks by name, as feature maps for images."""

from cndpm.experts.features.backbones.backbone import BackboneFeatures
from cndpm.experts.features.backbones.efficientnet_lite import EfficientNetLite
from cndpm.experts.features.backbones.pretrained import BACKBONES, Pretrained, pretrained

__all__ = ["BACKBONES", "BackboneFeatures", "EfficientNetLite", "Pretrained", "pretrained"]
