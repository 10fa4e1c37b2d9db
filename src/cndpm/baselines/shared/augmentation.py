"""Random changes of images that leave their class as it is."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from cndpm.experts.features.jitter import shift_and_mirror

AugmentationName = Literal["auto", "none", "shift", "crop-flip"]
"""Names of augmentations; "auto" depends on the images, see `Augmentation`."""


class Augmentation:
    """Shifts an image by up to an eighth of its width; "crop-flip" also mirrors every second one.

    "auto" is crop-flip for colour images, shift for grey ones and none for everything else: digits have a handedness,
    objects have not.
    """

    def __init__(self, name: AugmentationName, input_shape: tuple[int, ...], generator: torch.Generator) -> None:
        is_image = len(input_shape) == 3
        if name == "auto":
            name = "none" if not is_image else "crop-flip" if input_shape[0] == 3 else "shift"
        if name != "none" and not is_image:
            raise ValueError(f"{name} takes images (channels, height, width); got {input_shape}. Choose 'none'.")
        self.name = name
        self.generator = generator
        self.reach = max(1, input_shape[-1] // 8)

    def __call__(self, x: Tensor) -> Tensor:
        """Returns changed copies, (batch, channels, height, width); x itself if there is nothing to change."""
        if self.name == "none":
            return x
        shifts = torch.randint(0, 2 * self.reach + 1, (2, len(x)), generator=self.generator)
        mirrored = torch.zeros(len(x), dtype=torch.bool)
        if self.name == "crop-flip":
            mirrored = torch.rand(len(x), generator=self.generator) < 0.5
        return shift_and_mirror(x, shifts.to(x.device), mirrored.to(x.device), reach=self.reach)
