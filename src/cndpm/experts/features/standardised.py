"""Rows that a torch module or a function of arrays makes of samples, standardised on the first memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cndpm.experts.features.feature_map import FeatureMap
from cndpm.experts.features.vectors import IdentityFeatures
from cndpm.state import Keeps, State, copied, part

__all__ = ["FunctionFeatures", "ModuleFeatures"]


class StandardisedFeatures(Keeps, FeatureMap):
    """Standardises rows that are given by a module or a function; abstract."""

    kept: ClassVar = {"standardised": part()}
    _at_once = 256
    """Samples that a module or a function is given together."""

    def __init__(self) -> None:
        self._standardised = IdentityFeatures()

    @property
    def fitted(self) -> bool:
        return self._standardised.fitted

    @property
    def n_features(self) -> int:
        return self._standardised.n_features

    def fit(self, x: Tensor, *, generator: torch.Generator, labels: Tensor | None = None) -> None:
        self._standardised.fit(self._rows(x), generator=generator)

    def __call__(self, x: Tensor) -> Tensor:
        self._require_fitted()
        return self._standardised(self._rows(x))

    @abstractmethod
    def _rows(self, x: Tensor) -> Tensor:
        """Returns rows (B, d) of samples (B, *input_shape)."""


class ModuleFeatures(StandardisedFeatures):
    """The flattened output of a frozen module, standardised on the first memory.

    The module, (B, *input_shape) to (B, ...), is put into evaluation mode and never trained. Its weights travel with
    the state, its code does not: to load a state, construct the map with a module of the same shape.

    Example:
        >>> features = ModuleFeatures(nn.Conv2d(1, 2, 3))
        >>> x = torch.rand(20, 1, 5, 5)
        >>> features.fit(x, generator=torch.Generator())
        >>> features(x).shape
        torch.Size([20, 18])
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module.eval().requires_grad_(False)

    @torch.no_grad()
    def _rows(self, x: Tensor) -> Tensor:
        self.module.to(x.device)
        try:
            return torch.cat([self.module(chunk).flatten(1).float() for chunk in torch.split(x, self._at_once)])
        except (RuntimeError, AttributeError) as error:
            raise ValueError(
                f"the module given as features cannot be applied to samples of shape {tuple(x.shape[1:])}: {error}"
            ) from error

    @property
    def n_numbers_kept(self) -> int:
        n_module: int = sum(value.numel() for value in self.module.state_dict().values())
        return n_module + super().n_numbers_kept

    def state_dict(self) -> State:
        return {"module": copied(dict(self.module.state_dict())), **super().state_dict()}

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        self.module.load_state_dict(state["module"])
        return super().load_state_dict(state, **sizes)


class FunctionFeatures(StandardisedFeatures):
    """The flattened output of a function of arrays, standardised on the first memory.

    The function maps an array (B, *input_shape), float32, to an array with B rows, always the same for the same
    samples. It is code, which no state holds: to load a state, make the map with the same function.

    Example:
        >>> features = FunctionFeatures(lambda x: np.stack([x.sum(axis=1), x.max(axis=1)], axis=1))
        >>> x = torch.rand(20, 5)
        >>> features.fit(x, generator=torch.Generator())
        >>> features(x).shape
        torch.Size([20, 2])
    """

    def __init__(self, function: Callable[[NDArray[np.float32]], Any]) -> None:
        super().__init__()
        self.function = function

    def _rows(self, x: Tensor) -> Tensor:
        return torch.cat([self._part(part) for part in torch.split(x, self._at_once)])

    def _part(self, x: Tensor) -> Tensor:
        made = np.asarray(self.function(x.cpu().numpy()), dtype=np.float32)
        if made.ndim < 1 or len(made) != len(x):
            raise ValueError(f"features gave an array of shape {made.shape} for {len(x)} samples; one row each is due")
        if not np.isfinite(made).all():
            raise ValueError("features gave NaN or infinity; only finite values can be learned")
        return torch.from_numpy(made.reshape(len(made), -1)).to(x.device)
