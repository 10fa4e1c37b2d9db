"""Convolutional patch features: fixed filters taken from the first memory, no gradient, no pretraining.

Random patches of several sizes are contrast-normalised, whitened and become the filters (after Coates and Ng, 2011).
A feature is the response of a filter, rectified on both sides with a threshold, pooled by mean and deviation over a
2 x 2 grid and averaged over the admissible views of the image. Contrast normalisation and whitening are linear but for
one division, so they fold into the filters: r = F p / s - b for a patch p of local deviation s.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from cndpm.experts.features.feature_map import FeatureMap
from cndpm.experts.features.responses import CONTRAST_FLOOR, GRID, FoldedFilters, fold_filters
from cndpm.experts.features.views import admissible_views, apply_view, mirror_pairs
from cndpm.state import State, StateError, expect, tensor
from cndpm.threads import map_in_threads
from cndpm.training.recorded_steps import Routine, StepRecorder

_WHITENING_FLOOR = 0.1

_CPU_BLOCK = 4
"""Views whose responses are computed together on a CPU: these must stay in its cache."""

_CPU_IMAGES, _GPU_IMAGES = 16, 512
"""Images that are computed together."""

_RECORDED = 100
"""Images up to which a GPU's operations are recorded."""


class PatchFilters(NamedTuple):
    """Filters of one patch size."""

    weight: Tensor  # whitening folded into the filters, (P, C, size, size); each sums to zero
    bias: Tensor  # the filters' response to the mean normalised patch, (P,)


class PatchFeatures(FeatureMap):
    """Patch features of images (B, C, H, W) in about [0, 1]: 16 for each of `n_patches` filters of each size.

    Longer edges of patches are clipped to the image. The threshold of the rectification is in units of a response's
    deviation. Views "auto" are tested on the first memory.
    """

    def __init__(
        self,
        n_patches: int = 128,
        *,
        sizes: tuple[int, ...] = (4, 6, 8),
        threshold: float = 0.25,
        views: str | tuple[str, ...] = "auto",
    ) -> None:
        if n_patches < 1 or not sizes or min(sizes) < 2:
            raise ValueError(f"patches need n_patches >= 1 and sizes of at least 2; got {n_patches} and {sizes}")
        self.n_patches, self.sizes, self.threshold = n_patches, tuple(sizes), threshold
        self._view_choice = views
        self.views: list[str] = []
        self._pairs: dict[tuple[int, ...], list[str]] = {}
        self._filters: list[PatchFilters] = []
        self._folded: list[FoldedFilters] = []
        self._n_products = 0
        self._routine: Routine | None = None

    @property
    def fitted(self) -> bool:
        return bool(self._filters)

    @property
    def n_features(self) -> int:
        # Mean and deviation above the threshold, and the same below the negative one, in every cell.
        return 4 * GRID**2 * self.n_patches * len(self.sizes)

    @torch.no_grad()
    def fit(self, x: Tensor, *, generator: torch.Generator, labels: Tensor | None = None) -> None:
        if x.dim() != 4:
            raise ValueError(f"patch features take images (B, C, H, W); got shape {tuple(x.shape)}")
        x = x.float()
        edge = min(x.shape[-2:])
        filters = [_fit_filters(x, min(size, edge - 1), self.n_patches, generator) for size in self.sizes]
        self._take(filters, admissible_views(x, labels) if self._view_choice == "auto" else list(self._view_choice))

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        if not self._filters:
            self._require_fitted()
        if x.device.type == "cpu":
            per_image = self._n_products * x[0, 0].numel()
            return map_in_threads(self._chunk, x.float(), part_size=_CPU_IMAGES, n_multiplications=per_image)
        return torch.cat([self._on_gpu(chunk) for chunk in torch.split(x.float(), _GPU_IMAGES)])

    def _on_gpu(self, x: Tensor) -> Tensor:
        """Computes one chunk (B, C, H, W), as one graph where starting operations takes longer than running them."""
        if x.device.type != "cuda" or len(x) > _RECORDED:
            return self._chunk(x)
        if self._routine is None:
            recorder = StepRecorder(x.device, torch.Generator(x.device))
            self._routine = recorder.routine(lambda images: (self._chunk(images),), draws=False)
        return self._routine(x)[0]

    def _chunk(self, x: Tensor) -> Tensor:
        total = torch.zeros(len(x), self.n_features, device=x.device)
        # Responses of the views that a GPU computes together take at most 256 MB.
        on_cpu, n_pixels = x.device.type == "cpu", x.shape[-2] * x.shape[-1]
        block_size = _CPU_BLOCK if on_cpu else max(1, 2**25 // (self.n_patches * n_pixels))
        for sides, views in self._pairs.items():
            seen = torch.cat([apply_view(x, view) if view else x for view in views])
            parts = [filters.pooled(seen, sides, block_size).flatten(1) for filters in self._folded]
            total += torch.cat(parts, dim=1).view(len(views), *total.shape).sum(dim=0)
        return total / len(self.views)

    def _take(self, filters: list[PatchFilters], views: list[str]) -> None:
        self._filters, self.views, self._pairs = filters, views, mirror_pairs(views)
        self._folded = [fold_filters(f.weight, f.bias, self.threshold) for f in filters]
        self._n_products = len(views) * sum(f.weight.numel() for f in filters)
        self._routine = None

    @property
    def n_numbers_kept(self) -> int:
        return sum(values.numel() for filters in self._filters for values in filters)

    def state_dict(self) -> State:
        filters = [{"weight": f.weight.clone(), "bias": f.bias.clone()} for f in self._filters]
        return {"views": list(self.views), "filters": filters}

    def load_state_dict(self, state: State) -> None:
        if not isinstance(state["views"], list) or not all(isinstance(view, str) for view in state["views"]):
            raise StateError(f"'views' must be names; got {str(state['views'])[:80]}")
        if len(state["filters"]) not in (0, len(self.sizes)) or bool(state["filters"]) != bool(state["views"]):
            raise StateError(f"there must be filters of {len(self.sizes)} sizes; got {len(state['filters'])}")
        channels: dict[str, int] = {}
        for size, saved in zip(self.sizes, state["filters"], strict=False):
            weight = tensor(self.n_patches, "channels", "edge", "edge", dtype=torch.float32)
            found = expect(saved, {"weight": weight, "bias": tensor(self.n_patches, dtype=torch.float32)}, **channels)
            channels = {"channels": found["channels"]}
            if not 1 <= found["edge"] <= size:
                raise StateError(f"filters of edge {size} or less were expected; got {found['edge']}")
        filters = [PatchFilters(f["weight"].clone(), f["bias"].clone()) for f in state["filters"]]
        self._take(filters, list(state["views"]))


def _fit_filters(x: Tensor, size: int, n_patches: int, generator: torch.Generator) -> PatchFilters:
    """Whitens contrast-normalised patches of x and takes `n_patches` of them, at unit length, as filters."""
    patches = _random_patches(x, size, max(20_000, 4 * n_patches), generator).double()
    centred = patches - patches.mean(dim=1, keepdim=True)
    variance = centred.square().mean(dim=1)
    # Empty background neither whitens nor makes a filter.
    textured = variance >= 0.1 * variance.mean()
    normalised = (centred / (variance + CONTRAST_FLOOR).sqrt()[:, None])[textured]
    mean = normalised.mean(dim=0)
    eigenvalues, vectors = torch.linalg.eigh(torch.cov(normalised.T, correction=0).reshape(len(mean), -1))
    whitening = (vectors / (eigenvalues.clamp_min(0) + _WHITENING_FLOOR).sqrt()) @ vectors.T
    chosen = torch.randperm(len(normalised), generator=generator)[:n_patches]
    chosen = chosen.repeat(-(-n_patches // len(chosen)))[:n_patches].to(x.device)
    atoms = functional.normalize((normalised[chosen] - mean) @ whitening, dim=1)
    weight = atoms @ whitening
    bias = weight @ mean
    weight = weight - weight.mean(dim=1, keepdim=True)
    return PatchFilters(weight.reshape(n_patches, x.shape[1], size, size).float(), bias.float())


def _random_patches(x: Tensor, size: int, n: int, generator: torch.Generator) -> Tensor:
    """Returns n patches at random places of random images, (n, C * size * size)."""
    height, width = x.shape[-2:]
    image = torch.randint(len(x), (n,), generator=generator).to(x.device)
    top = torch.randint(height - size + 1, (n,), generator=generator).to(x.device)
    left = torch.randint(width - size + 1, (n,), generator=generator).to(x.device)
    offset = torch.arange(size, device=x.device)
    rows = (top[:, None] + offset)[:, :, None].expand(n, size, size)
    columns = (left[:, None] + offset)[:, None, :].expand(n, size, size)
    return x[image[:, None, None], :, rows, columns].permute(0, 3, 1, 2).reshape(n, -1)
