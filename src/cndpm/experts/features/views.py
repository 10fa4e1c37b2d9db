"""Views of an image (mirrored, turned), the test of which of them suit a stream, and small random changes of images.

A view is admissible if held-out samples of the first memory stay as probable after it, given their labels where there
are any: digits have a handedness, photographs do not. Without labels even digits, all kinds together, have hardly one.
Gaussians of one covariance over the first principal directions are fitted on half of the memory; the mean log density
of the other half may fall by no more than `tolerance` times the spread of that log density between samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from cndpm.state import Keeps, flag

VIEW_GROUPS: dict[str, tuple[str, ...]] = {"mirror": ("mirror",), "turn": ("turn+8", "turn-8")}
"""Views that are admitted or refused together."""

_MIN_MEMORY = 32
"""A memory too small to judge admits nothing."""

_MAX_DIRECTIONS = 48
"""Principal directions that the test looks at."""


def apply_view(x: Tensor, view: str) -> Tensor:
    """Returns images (B, C, H, W) as seen in a view: primitive ones joined by commas, in turn; "" is none."""
    for name in filter(None, view.split(",")):
        if name == "mirror":
            x = x.flip(-1)
        elif name.startswith("turn"):  # about the centre; places outside repeat the border
            grid = _turned_grid(float(name.removeprefix("turn")), x.shape[-2], x.shape[-1], x.dtype, x.device)
            grid = grid.expand(len(x), -1, -1, -1)
            x = functional.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
        else:
            views = sorted(view for group in VIEW_GROUPS.values() for view in group)
            raise ValueError(f"a view is one of {views}; got {name!r}")
    return x


def admissible_views(
    x: Tensor, labels: Tensor | None = None, *, candidates: tuple[str, ...] = ("mirror", "turn"), tolerance: float = 0.5
) -> list[str]:
    """Returns the views over which features of this stream may be averaged; the first is always the image itself.

    Mirror images are combined with every other view. Candidates are keys of :data:`VIEW_GROUPS`; what is tolerated is a
    loss of mean log density in units of its spread between samples.
    """
    if len(x) < _MIN_MEMORY:
        return [""]
    tested = [view for group in candidates for view in VIEW_GROUPS[group]]
    changes, spread = density_change(x, *tested, labels=labels)
    refused = {view for view, change in zip(tested, changes, strict=True) if change < -tolerance * max(spread, 1e-9)}
    admitted = [group for group in candidates if not refused & set(VIEW_GROUPS[group])]
    views = [""] + [view for group in admitted if group != "mirror" for view in VIEW_GROUPS[group]]
    if "mirror" in admitted:
        views += [f"{view},mirror" if view else "mirror" for view in views]
    return views


def mirror_pairs(views: Sequence[str]) -> dict[tuple[int, ...], list[str]]:
    """Groups views that differ only by mirroring. Maps the wanted sides (1 as is, -1 mirrored) to the views to compute.

    Example:
        >>> mirror_pairs(["", "turn+8", "mirror"])
        {(1, -1): [''], (1,): ['turn+8']}
    """
    sides: dict[str, tuple[int, ...]] = {}
    for view in views:
        *before, last = view.split(",")
        base, side = (",".join(before), -1) if last == "mirror" else (view, 1)
        sides[base] = (*sides.get(base, ()), side)
    pairs: dict[tuple[int, ...], list[str]] = {}
    for base, meant in sides.items():
        pairs.setdefault(meant, []).append(base)
    return pairs


def density_change(x: Tensor, *views: str, labels: Tensor | None = None) -> tuple[list[float], float]:
    """Returns changes of the mean held-out log density under views, and the spread of that density between samples.

    Of every class every other image is fitted, the rest is held out; densities are given the label.
    """
    labels = torch.zeros(len(x), dtype=torch.long) if labels is None else labels
    groups = torch.unique(labels.to(x.device), return_inverse=True)[1]
    members = functional.one_hot(groups).double()
    is_fitted = (members.cumsum(dim=0) * members).sum(dim=1) % 2 == 1
    fitted, held_out, own, members = x[is_fitted], x[~is_fitted], groups[~is_fitted], members[is_fitted]
    n_directions = max(1, min(_MAX_DIRECTIONS, len(fitted) // 8, x[0].numel()))
    rows = fitted.flatten(1).double()
    mean = rows.mean(dim=0)
    directions = torch.linalg.svd(rows - mean, full_matrices=False)[2][:n_directions].T
    means = (members.T @ (rows - mean) @ directions) / members.sum(dim=0)[:, None]
    deviations = (rows - mean) @ directions - members @ means
    scale, axes = torch.linalg.svd(deviations, full_matrices=False)[1:]
    whitening = axes.T / (scale.clamp_min(1e-9) / math.sqrt(max(1, len(rows) - len(means))))

    def log_density(images: Tensor) -> Tensor:
        whitened: Tensor = ((images.flatten(1).double() - mean) @ directions - means[own]) @ whitening
        return -0.5 * whitened.square().sum(dim=1)

    plain = log_density(held_out)
    changes = [float(log_density(apply_view(held_out, view)).mean() - plain.mean()) for view in views]
    return changes, float(plain.std())


@lru_cache(maxsize=64)
def _turned_grid(degrees: float, height: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Returns the places that the pixels of a turned image come from, (1, H, W, 2)."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    matrix = torch.tensor([[[cos, -sin * height / width, 0.0], [sin * width / height, cos, 0.0]]], dtype=dtype)
    return functional.affine_grid(matrix.to(device), [1, 1, height, width], align_corners=False)


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
