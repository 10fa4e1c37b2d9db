"""Small random changes of images, each at its own place, for networks to learn beside the images themselves."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from cndpm.experts.features.views import admissible_views
from cndpm.state import Keeps, flag


class Jitter(Keeps):
    """Small random changes of images for networks to learn from: shifts, and mirror images where they are admissible.

    An image is shifted by up to a sixteenth of its width; whether it may be mirrored is tested on the first memory.
    """

    kept: ClassVar = {"mirrors": flag()}

    def __init__(self) -> None:
        self.mirrors = False

    def fit(self, x: Tensor, labels: Tensor | None = None) -> None:
        """Decides on the first memory (M, C, H, W) whether images may be mirrored."""
        self.mirrors = "mirror" in admissible_views(x, labels, candidates=("mirror",))

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Returns changed copies of x (B, C, H, W), by a generator on the host."""
        reach = x.shape[-1] // 16
        shifts = torch.randint(0, 2 * reach + 1, (2, len(x)), generator=generator)
        mirrored = torch.rand(len(x), generator=generator) < (0.5 if self.mirrors else 0.0)
        return shift_and_mirror(x, shifts.to(x.device), mirrored.to(x.device), reach=reach).contiguous()


def shift_and_mirror(x: Tensor, shifts: Tensor, mirrored: Tensor, *, reach: int) -> Tensor:
    """Crops images (n, C, H, W), padded by `reach` zeros, each at its own place; mirrors those marked (n,).

    A shift is the row and the column of the crop's corner, 0 to 2 reach, (2, n).
    """
    height, width = x.shape[-2:]
    columns = torch.arange(width, device=x.device)
    columns = torch.where(mirrored[:, None], width - 1 - columns, columns) + shifts[1][:, None]
    rows = torch.arange(height, device=x.device) + shifts[0][:, None]
    padded = functional.pad(x, (reach, reach, reach, reach)).permute(0, 2, 3, 1)
    samples = torch.arange(len(x), device=x.device)[:, None, None]
    return padded[samples, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
