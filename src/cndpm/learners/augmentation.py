"""Random changes of images that leave their class as it is."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["Augmentation", "AugmentationName"]

AugmentationName = Literal["auto", "none", "shift", "crop-flip"]


class Augmentation:
    """Shifts an image by up to an eighth of its width; "crop-flip" also mirrors every second one.

    Args:
        name: "auto" is crop-flip for colour images, shift for grey ones and none for everything else: digits have a
            handedness, objects have not.
        input_shape: Shape of one sample.
        generator: Source of all random choices, on the CPU.
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
        """Changed copies, (batch, channels, height, width); x itself where there is nothing to change."""
        if self.name == "none":
            return x
        shifts = torch.randint(0, 2 * self.reach + 1, (2, len(x)), generator=self.generator)
        mirrored = torch.zeros(len(x), dtype=torch.bool)
        if self.name == "crop-flip":
            mirrored = torch.rand(len(x), generator=self.generator) < 0.5
        return shift_and_mirror(x, shifts.to(x.device), mirrored.to(x.device), reach=self.reach)


def shift_and_mirror(x: Tensor, shifts: Tensor, mirrored: Tensor, *, reach: int) -> Tensor:
    """Crops each image, padded by `reach` zeros on every side, at its own place; mirrors those marked.

    Args:
        x: (batch, channels, height, width).
        shifts: Row and column of the crop's corner, 0 to 2 reach, (2, batch).
        mirrored: Which images are mirrored left to right, (batch,).
        reach: Padding.
    """
    height, width = x.shape[-2:]
    columns = torch.arange(width, device=x.device)
    columns = torch.where(mirrored[:, None], width - 1 - columns, columns) + shifts[1][:, None]
    rows = torch.arange(height, device=x.device) + shifts[0][:, None]
    padded = F.pad(x, (reach, reach, reach, reach)).permute(0, 2, 3, 1)
    samples = torch.arange(len(x), device=x.device)[:, None, None]
    return padded[samples, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
