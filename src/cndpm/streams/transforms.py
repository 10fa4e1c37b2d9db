"""Transformations of whole sets of images, on bytes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, interpolate

_CHUNK = 4096  # images at a time: the intermediate floats stay small


def resize(x: Tensor, size: int) -> Tensor:
    """Resizes images (n, C, H, W) of bytes to (n, C, size, size), bilinear with antialiasing, rounded to bytes."""
    if x.shape[2:] == (size, size):
        return x
    return _by_chunks(x, lambda part: interpolate(part, size=(size, size), mode="bilinear", antialias=True))


def set_channels(x: Tensor, n_channels: int) -> Tensor:
    """Repeats grey images (n, 1, H, W) to `n_channels`, or averages colours to one channel."""
    if x.shape[1] == n_channels:
        return x
    if x.shape[1] == 1:
        return x.repeat(1, n_channels, 1, 1)
    if n_channels == 1:
        return _by_chunks(x, lambda part: part.mean(1, keepdim=True))
    raise ValueError(f"images have 1 or {n_channels} channels here; got {x.shape[1]}")


def rotate(x: Tensor, degrees: float) -> Tensor:
    """Turns images (n, C, H, W) counter-clockwise about their centre, bilinear, black outside."""
    if degrees % 360 == 0:
        return x
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    # The grid maps where a pixel lies to where it is read, in coordinates whose unit is half the image.
    ratio = x.shape[2] / x.shape[3]
    matrix = torch.tensor([[cos, -sin * ratio, 0.0], [sin / ratio, cos, 0.0]], device=x.device)

    def turn(part: Tensor) -> Tensor:
        grid = affine_grid(matrix.expand(len(part), 2, 3), list(part.shape), align_corners=False)
        return grid_sample(part, grid, align_corners=False)

    return _by_chunks(x, turn)


def permute_pixels(x: Tensor, seed: int) -> Tensor:
    """Applies one fixed permutation to the positions of every sample (n, ..., d or H x W), channels alike."""
    flat = x.flatten(2) if x.ndim > 2 else x
    order = torch.from_numpy(np.random.default_rng(seed).permutation(flat.shape[-1])).to(x.device)
    return flat[..., order].reshape(x.shape)


def binarise(x: Tensor, generator: torch.Generator) -> Tensor:
    """Draws each byte v as 1 with probability v / 255, else 0; returns float32 of the same shape.

    A draw is one of 65,536 numbers, four to a 64-bit random word: 0 and 255 are exact, all others to within 2^-16.
    """
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device)
    draws = words.random_(-(2**63), None, generator=generator).view(torch.int16)[: x.numel()].view(x.shape)
    # v = 0 maps to -32768, which no draw reaches after the clamp; v = 255 maps to 32767, which none exceeds.
    thresholds = x.to(torch.int16).mul_(257).sub_(2**15)
    ones = torch.empty(x.shape, device=x.device)  # compared straight into floats: a detour over bools costs more
    return torch.le(draws.clamp_(min=-(2**15) + 1), thresholds, out=ones)


def _by_chunks(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies `function` to images as floats and rounds to bytes."""
    return torch.cat(
        [function(part.float()).round_().clamp_(0, 255).to(torch.uint8) for part in torch.split(x, _CHUNK)]
    )
