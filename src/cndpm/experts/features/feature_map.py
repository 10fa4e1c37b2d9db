"""The contract of feature maps: fitted once on the first memory, then frozen and stored with the state.

A density need not live in the space of the data. Every map turns samples (B, ...) into rows (B, d); the
numbers that it stores count among those that a model keeps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from cndpm.errors import CNDPMError
from cndpm.state import State

__all__ = ["FeatureMap", "NotInvertibleError"]


class NotInvertibleError(CNDPMError, NotImplementedError):
    """Raised by a map that cannot turn features back into samples; the message says which map and what to do."""


class FeatureMap(ABC):
    """Maps x (B, *input_shape) to features (B, d), float32, on the device of x.

    Example:
        A map of one's own:

        >>> class Halves(FeatureMap):
        ...     fitted, n_features, n_numbers_kept = True, 2, 0
        ...     def fit(self, x, *, generator, labels=None): ...
        ...     def __call__(self, x): return torch.stack([half.sum(dim=1) for half in x.chunk(2, dim=1)], dim=1)
        ...     def state_dict(self): return {}
        ...     def load_state_dict(self, state): ...
        >>> Halves()(torch.ones(1, 6))
        tensor([[3., 3.]])
    """

    keeps_x: bool = False
    """Whether the features are x in other units, so that their density is one of x."""

    @property
    @abstractmethod
    def fitted(self) -> bool:
        """Whether :meth:`fit` has run."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """d, known once fitted."""

    @abstractmethod
    def fit(self, x: Tensor, *, generator: torch.Generator, labels: Tensor | None = None) -> None:
        """Fixes the map on the first memory.

        Args:
            x: The first memory, (M, *input_shape).
            generator: Source of random choices, on the CPU.
            labels: Class indices (M,), where there are any.
        """

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Returns features (B, d) of x (B, *input_shape)."""

    def inverse(self, features: Tensor) -> Tensor:
        """Returns samples (B, *input_shape) with features (B, d), for maps that can be undone."""
        raise NotInvertibleError(
            f"{type(self).__name__} cannot turn features back into samples; "
            "to sample, use the identity map or an expert with a generative density"
        )

    @property
    def log_volume(self) -> float:
        """log |dx / dz| for maps that only change the units of x; 0 for others, whose densities are of features."""
        return 0.0

    @property
    def n_numbers_kept(self) -> int:
        """Numbers the frozen map stores: those of its tensors, and of the maps inside it."""
        n_numbers = 0
        for value in vars(self).values():
            if isinstance(value, Tensor):
                n_numbers += value.numel()
            elif isinstance(value, FeatureMap):
                n_numbers += value.n_numbers_kept
        return n_numbers

    @abstractmethod
    def state_dict(self) -> State:
        """Returns the frozen map as tensors and plain values; empty values before fitting."""

    @abstractmethod
    def load_state_dict(self, state: State) -> object:
        """Restores the map to the bit, on the device of the state's tensors."""

    def _require_fitted(self) -> None:
        if not self.fitted:
            raise RuntimeError(f"{type(self).__name__} has not been fitted; call fit() with the first memory before")
