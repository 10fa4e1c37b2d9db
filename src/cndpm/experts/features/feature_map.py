"""The contract of feature maps: fitted once on the first memory, then frozen and stored with the state.

A density need not live in the space of the data. Every map turns samples (B, ...) into rows (B, d); what it keeps to
do so counts among the numbers a model keeps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from cndpm.state import State

__all__ = ["FeatureMap", "NotInvertibleError"]


class NotInvertibleError(NotImplementedError):
    """The map cannot turn features back into samples; the message says which map and what to do."""


class FeatureMap(ABC):
    """Maps x (B, *input_shape) to features (B, d), float32, on the device of x."""

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
        """Fixes the map on the first memory, x (M, *input_shape); random choices come from a CPU `generator`.

        `labels` are class indices (M,), where there are any.
        """

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Features of x, (B, d)."""

    def inverse(self, features: Tensor) -> Tensor:
        """Samples with these features, (B, *input_shape), for maps that can be undone."""
        raise NotInvertibleError(
            f"{type(self).__name__} cannot turn features back into samples; "
            "to sample, use the identity map or an expert with a generative density"
        )

    @property
    def keeps_x(self) -> bool:
        """Whether the features are x in other units, so that their density is one of x."""
        return False

    @property
    def log_volume(self) -> float:
        """log |dx / dz| for maps that only change the units of x; 0 for others, whose densities are of features."""
        return 0.0

    @property
    @abstractmethod
    def n_numbers_kept(self) -> int:
        """Numbers the frozen map stores."""

    @abstractmethod
    def state_dict(self) -> State:
        """The frozen map as tensors and plain values; empty values before fitting."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Restores the above to the bit; tensors go to the device of the state's."""

    def _require_fitted(self) -> None:
        if not self.fitted:
            raise RuntimeError(f"{type(self).__name__} has not been fitted; call fit() with the first memory before")
