"""Convolutional patch features: fixed filters taken from the first memory, no gradient, no pretraining.

Random patches of several sizes are contrast-normalised, whitened and become the filters (after Coates and Ng, 2011).
A feature is the response of a filter, rectified on both sides with a threshold, pooled by mean and deviation over a
2 x 2 grid and averaged over the admissible views of the image. Contrast normalisation and whitening are linear but for
one division, so they fold into the filters: r = (conv(x, F) - b s) / s with s the local deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional

from cndpm.experts.features.feature_map import FeatureMap
from cndpm.experts.features.views import admissible_views, apply_view
from cndpm.state import State

__all__ = ["PatchFeatures", "PatchFilters"]

_CONTRAST_FLOOR = 10 / 255**2
_WHITENING_FLOOR = 0.1
_GRID = 2


@dataclass(frozen=True)
class PatchFilters:
    """Filters of one patch size.

    Attributes:
        weight: Whitening folded into the filters, (P, C, size, size); each sums to zero.
        bias: The filters' response to the mean normalised patch, (P,).
    """

    weight: Tensor
    bias: Tensor

    def responses(self, x: Tensor) -> Tensor:
        """Responses to the contrast-normalised patches of x (B, C, H, W): (B, P, H', W'), filters last in memory."""
        deviation = _local_deviation(x, self.weight.shape[-1])
        # Filters last is the layout that convolutions use inside; any other is a copy more.
        x, weight = (part.contiguous(memory_format=torch.channels_last) for part in (x, self.weight))
        return functional.conv2d(x, weight).div_(deviation).sub_(self.bias[:, None, None])


class PatchFeatures(FeatureMap):
    """Patch features of images (B, C, H, W) with values in about [0, 1].

    Args:
        n_patches: Filters per patch size; d = 16 * n_patches * number of sizes.
        sizes: Edge lengths of the patches; longer ones are clipped to the image.
        threshold: Of the rectification, in units of a response's deviation.
        views: "auto" tests the candidates on the first memory; otherwise the views themselves.
        chunk_size: Images at a time. On a CPU small chunks stay in the cache.

    Example:
        >>> features = PatchFeatures(n_patches=32)
        >>> features.fit(memory, generator=torch.Generator().manual_seed(0))
        >>> features(images).shape
        torch.Size([10, 1536])
    """

    def __init__(
        self,
        n_patches: int = 128,
        *,
        sizes: tuple[int, ...] = (4, 6, 8),
        threshold: float = 0.25,
        views: str | tuple[str, ...] = "auto",
        chunk_size: int | None = None,
    ) -> None:
        if n_patches < 1 or not sizes or min(sizes) < 2:
            raise ValueError(f"patches need n_patches >= 1 and sizes of at least 2; got {n_patches} and {sizes}")
        self.n_patches, self.sizes, self.threshold = n_patches, tuple(sizes), threshold
        self._view_choice, self._chunk_size = views, chunk_size
        self.views: list[str] = []
        self._filters: list[PatchFilters] = []

    @property
    def fitted(self) -> bool:
        """Whether :meth:`fit` has run."""
        return bool(self._filters)

    @property
    def n_features(self) -> int:
        """Two sides, two moments and four cells for every filter."""
        return 4 * _GRID**2 * self.n_patches * len(self.sizes)

    @torch.no_grad()
    def fit(self, x: Tensor, *, generator: torch.Generator) -> None:
        """Takes the filters from x (M, C, H, W) and decides the views on it."""
        if x.dim() != 4:
            raise ValueError(f"patch features take images (B, C, H, W); got shape {tuple(x.shape)}")
        x = x.float()
        edge = min(x.shape[-2:])
        self._filters = [_fit_filters(x, min(size, edge - 1), self.n_patches, generator) for size in self.sizes]
        self.views = admissible_views(x) if self._view_choice == "auto" else list(self._view_choice)

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, d)."""
        self._require_fitted()
        chunk_size = self._chunk_size or (16 if x.device.type == "cpu" else _gpu_chunk(x, self.n_patches))
        return torch.cat([self._chunk(chunk) for chunk in torch.split(x.float(), chunk_size)])

    def _chunk(self, x: Tensor) -> Tensor:
        total = torch.zeros(len(x), self.n_features, device=x.device)
        for view in self.views:
            seen = apply_view(x, view)
            parts = [_pool(filters.responses(seen), self.threshold) for filters in self._filters]
            total += torch.cat(parts, dim=1)
        return total / len(self.views)

    @property
    def n_numbers_kept(self) -> int:
        """Filters and biases."""
        return sum(filters.weight.numel() + filters.bias.numel() for filters in self._filters)

    def state_dict(self) -> State:
        """Filters, biases and views."""
        filters = [{"weight": f.weight.clone(), "bias": f.bias.clone()} for f in self._filters]
        return {"views": list(self.views), "filters": filters}

    def load_state_dict(self, state: State) -> None:
        """Restores them."""
        self.views = list(state["views"])
        self._filters = [PatchFilters(f["weight"].clone(), f["bias"].clone()) for f in state["filters"]]


def _fit_filters(x: Tensor, size: int, n_patches: int, generator: torch.Generator) -> PatchFilters:
    """Whitens contrast-normalised patches of x and takes `n_patches` of them, at unit length, as filters."""
    patches = _random_patches(x, size, max(20_000, 4 * n_patches), generator).double()
    centred = patches - patches.mean(dim=1, keepdim=True)
    variance = centred.square().mean(dim=1)
    # Empty background neither whitens nor makes a filter.
    textured = variance >= 0.1 * variance.mean()
    normalised = (centred / (variance + _CONTRAST_FLOOR).sqrt()[:, None])[textured]
    mean = normalised.mean(dim=0)
    eigenvalues, vectors = torch.linalg.eigh(torch.cov(normalised.T, correction=0))
    whitening = (vectors / (eigenvalues.clamp_min(0) + _WHITENING_FLOOR).sqrt()) @ vectors.T
    chosen = torch.randperm(len(normalised), generator=generator)[:n_patches]
    chosen = chosen.repeat(-(-n_patches // len(chosen)))[:n_patches].to(x.device)
    atoms = functional.normalize((normalised[chosen] - mean) @ whitening, dim=1)
    weight = atoms @ whitening
    bias = weight @ mean
    weight = weight - weight.mean(dim=1, keepdim=True)
    return PatchFilters(weight.reshape(n_patches, x.shape[1], size, size).float(), bias.float())


def _random_patches(x: Tensor, size: int, n: int, generator: torch.Generator) -> Tensor:
    """n patches at random places of random images, (n, C * size * size)."""
    height, width = x.shape[-2:]
    image = torch.randint(len(x), (n,), generator=generator).to(x.device)
    top = torch.randint(height - size + 1, (n,), generator=generator).to(x.device)
    left = torch.randint(width - size + 1, (n,), generator=generator).to(x.device)
    offset = torch.arange(size, device=x.device)
    rows = (top[:, None] + offset)[:, :, None].expand(n, size, size)
    columns = (left[:, None] + offset)[:, None, :].expand(n, size, size)
    return x[image[:, None, None], :, rows, columns].permute(0, 3, 1, 2).reshape(n, -1)


def _local_deviation(x: Tensor, size: int) -> Tensor:
    """sqrt(variance + floor) of every patch, all channels together, (B, 1, H', W')."""
    rows, columns = (_sliding_average(n, size, x.device) for n in x.shape[-2:])
    # Products of matrices, not convolutions, which a GPU would round too coarsely for a difference of squares.
    mean, square = (rows @ moment @ columns.mT for moment in (x.mean(dim=1), x.square().mean(dim=1)))
    return (square - mean.square()).clamp_min_(0).add_(_CONTRAST_FLOOR).sqrt_().unsqueeze(1)


@lru_cache(maxsize=64)
def _sliding_average(n: int, size: int, device: torch.device) -> Tensor:
    """Averages of `size` neighbours among n as a matrix, (n - size + 1, n)."""
    start, position = torch.arange(n - size + 1, device=device)[:, None], torch.arange(n, device=device)
    return ((position >= start) & (position < start + size)).float() / size


def _pool(responses: Tensor, threshold: float) -> Tensor:
    """Mean and deviation of both rectified sides on a 2 x 2 grid: (B, P, H, W) to (B, 16 P).

    Works in place as far as it can: on a CPU the time goes into fresh buffers, not into arithmetic.
    """
    cells = _grid_cells(responses.shape[-2], responses.shape[-1], responses.device).mT
    responses = responses.flatten(2).mT
    above = (responses - threshold).clamp_min_(0)
    below = responses.add_(threshold).clamp_max_(0)
    pooled = []
    for side, sign in ((above, 1), (below, -1)):
        mean = cells @ side
        square = cells @ side.square_()
        pooled += [sign * mean.mT, square.sub_(mean.square()).clamp_min_(0).sqrt_().mT]
    return torch.cat(pooled, dim=1).flatten(1)


@lru_cache(maxsize=64)
def _grid_cells(height: int, width: int, device: torch.device) -> Tensor:
    """Averaging over a 2 x 2 grid as a matrix, (H * W, 4); the middle row of an odd number belongs to both sides."""

    def halves(n: int) -> Tensor:
        position = torch.arange(n, device=device)
        sides = torch.stack([position < -(-n // _GRID), position >= n // _GRID]).float()
        return sides / sides.sum(dim=1, keepdim=True)

    return torch.einsum("ih,jw->hwij", halves(height), halves(width)).reshape(height * width, _GRID**2)


def _gpu_chunk(x: Tensor, n_patches: int) -> int:
    """Images at a time such that one response map takes at most 256 MB."""
    return max(8, min(2048, 2**26 // (n_patches * x.shape[-2] * x.shape[-1])))
