"""A frozen pretrained network as a feature map for images.

Features are the outputs of the network's last and middle blocks, pooled over places; averaged over the image and its
mirror image where the first memory shows that the stream has no handedness; standardised on the first memory; and
beside them random projections of these, rectified, with which a linear rule tells classes apart that it could not
before. The state holds neither the network, which everybody has who installed it, nor the projections, which follow
from a seed: it holds the checksum of the one and the seed of the others.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from cndpm.experts.features.backbones.pretrained import Pretrained, pretrained
from cndpm.experts.features.feature_map import FeatureMap
from cndpm.experts.features.vectors import IdentityFeatures
from cndpm.experts.features.views import admissible_views
from cndpm.state import Keeps, State, flag, number, part, whole
from cndpm.threads import map_in_threads

_CENTRE, _SPREAD = 127 / 255, 128 / 255
"""What the networks' authors subtract from pixels in [0, 1], and divide them by."""

_MULTIPLICATIONS = 4e8
"""About how many one image of 224 x 224 pixels takes."""

_GPU_IMAGES = 256
"""Images that a GPU takes together."""


class BackboneFeatures(Keeps, FeatureMap):
    """Features of images (B, 1 or 3, H, W) by a frozen network of :data:`cndpm.experts.features.backbones.BACKBONES`.

    Pixels lie in [0, 1] or in [0, 255]; which of the two is told by the first memory. Images are scaled to
    `image_size`, None for that of the network's training: a smaller one is faster and less accurate. Beside the
    features there are `n_expanded` rectified random projections. MissingExtraError: the package that carries the
    weights is not installed.
    """

    kept: ClassVar = {
        "image_size": whole(1),
        "highest": number(0),
        "mirrors": flag(),
        "seed": whole(),
        "n_expanded": whole(),
        "inner": part(),
        "outer": part(),
    }

    def __init__(
        self,
        name: str = "efficientnet-lite0",
        *,
        weights: str | Path | None = None,
        image_size: int | None = None,
        n_expanded: int = 3400,
    ) -> None:
        self.name, self.n_expanded = name, n_expanded
        self._loaded: Pretrained = pretrained(name, weights)
        self.image_size = image_size or self._loaded.image_size
        self._inner, self._outer = IdentityFeatures(), IdentityFeatures()
        self._highest, self._mirrors, self._seed = 1.0, False, 0
        self._projection: Tensor | None = None

    @property
    def fitted(self) -> bool:
        return self._outer.fitted

    @property
    def n_features(self) -> int:
        return self._outer.n_features

    def fit(self, x: Tensor, *, generator: torch.Generator, labels: Tensor | None = None) -> None:
        if x.dim() != 4 or x.shape[1] not in (1, 3):
            raise ValueError(f"a backbone takes images (B, 1 or 3, height, width); got shape {tuple(x.shape)}")
        self._highest = 255.0 if float(x.max()) > 1.5 else 1.0
        self._mirrors = "mirror" in admissible_views(x.float(), labels, candidates=("mirror",))
        self._seed = int(torch.randint(2**31, (), generator=generator))
        self._projection = None
        outputs = self._outputs(x)
        self._inner.fit(outputs, generator=generator)
        self._outer.fit(self._expanded(outputs), generator=generator)

    def __call__(self, x: Tensor) -> Tensor:
        self._require_fitted()
        return self._outer(self._expanded(self._outputs(x)))

    @torch.no_grad()
    def _outputs(self, x: Tensor) -> Tensor:
        """Returns the network's outputs, averaged over views, (B, n)."""
        if x.device.type == "cpu":
            work = _MULTIPLICATIONS * (self.image_size / 224) ** 2 * (1 + self._mirrors)
            return map_in_threads(self._part, x, part_size=8, n_multiplications=work)
        return torch.cat([self._part(part) for part in torch.split(x, _GPU_IMAGES)])

    def _part(self, x: Tensor) -> Tensor:
        images = (x.float() / self._highest - _CENTRE) / _SPREAD
        size = (self.image_size, self.image_size)
        images = functional.interpolate(images.expand(-1, 3, -1, -1), size, mode="bicubic", antialias=True)
        network = self._loaded.network.to(x.device)
        outputs: Tensor = network(images)
        return (outputs + network(images.flip(-1))) / 2 if self._mirrors else outputs

    def _expanded(self, outputs: Tensor) -> Tensor:
        """Returns standardised outputs with their rectified projections, (B, n + n_expanded)."""
        rows = self._inner(outputs)
        if not self.n_expanded:
            return rows
        if self._projection is None or self._projection.device != rows.device:
            self._projection = _random_directions(rows.shape[1], self.n_expanded, self._seed).to(rows.device)
        return torch.cat([rows, (rows @ self._projection).relu()], dim=1)

    @property
    def n_numbers_kept(self) -> int:
        return self._inner.n_numbers_kept + self._outer.n_numbers_kept

    def state_dict(self) -> State:
        return {"name": self.name, "checksum": self._loaded.checksum, **super().state_dict()}

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        self._projection = None
        return super().load_state_dict(state, **sizes)

    def _admit(self, state: State) -> None:
        if (state["name"], state["checksum"]) != (self.name, self._loaded.checksum):
            raise ValueError(
                f"this model was made with the backbone {state['name']} whose weights have the sha256 "
                f"{state['checksum']}; here is {self.name} with {self._loaded.checksum}. Give the file of weights that "
                "it was made with."
            )


def _random_directions(n_inputs: int, n_outputs: int, seed: int) -> Tensor:
    """Draws directions of about unit length, (n_inputs, n_outputs); the same ones with every version of numpy."""
    draws = np.random.RandomState(seed).standard_normal((n_inputs, n_outputs))
    return torch.from_numpy(draws.astype(np.float32)) / math.sqrt(n_inputs)
