"""What banks of conjugate Gaussians share: an expert is sums, founded in one step and removed by addition."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

import torch
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.features import FeatureMap
from cndpm.experts.gaussian.own_covariance import OwnGaussians
from cndpm.experts.gaussian.rows import FeatureRows, RowCache
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.experts.gaussian.transfer import to_device
from cndpm.state import State

__all__ = ["AdditiveBank"]

Gaussians = TypeVar("Gaussians", bound=SharedGaussians | OwnGaussians)


class AdditiveBank(Bank, Generic[Gaussians]):
    """Gaussians over the features of x.

    Args:
        feature_map: Where the Gaussians live; fitted on the first memory unless it already is.
        seed: Of the feature map's random choices.
        device: Where statistics live and computation runs.
    """

    def __init__(self, feature_map: FeatureMap, *, seed: int, device: torch.device | str) -> None:
        self.feature_map = feature_map
        self.device = torch.device(device)
        self._generator = torch.Generator().manual_seed(seed)
        self._gaussians: Gaussians | None = None
        self._memory: tuple[Tensor, Tensor] | None = None
        self._cache = RowCache(feature_map)

    @property
    def is_additive(self) -> bool:
        """An expert is its statistics."""
        return True

    @property
    def in_training(self) -> bool:
        """Whether a memory waits to become an expert."""
        return self._memory is not None

    def start_expert(self, x: Tensor, y: Tensor | None) -> None:
        """Takes the memory; :meth:`train_expert` turns it into an expert in one step."""
        if self.in_training:
            raise RuntimeError("an expert is already in training; finish it with train_expert()")
        self._memory = (x.detach().to(self.device, copy=True), self._taken(x, y))

    def train_expert(self, max_steps: int) -> bool:
        """Founds the expert; one step suffices."""
        if self._memory is None:
            raise RuntimeError("no expert has been started; call start_expert() with the memory before")
        if max_steps < 1:
            return False
        self._found(*self._memory)
        self._memory = None
        return True

    def training_progress(self) -> float:
        """0 while a memory waits."""
        return 0.0 if self.in_training else 1.0

    def remove(self, k: int, into: int) -> None:
        """Adds expert k's statistics to those of `into`, exactly, and removes it."""
        if k == into or not (0 <= k < self.n_experts and 0 <= into < self.n_experts):
            raise ValueError(f"remove takes two different experts below {self.n_experts}; got {k} and {into}")
        self._merge(k, into)

    @property
    def n_parameters(self) -> int:
        """Means of all components and one triangle of every covariance: what a Gaussian model would train."""
        return 0 if self._gaussians is None else self._gaussians.n_numbers_kept

    def state_dict(self) -> State:
        """Everything, a waiting memory and the random state included."""
        return {
            "feature_map": self.feature_map.state_dict(),
            "gaussians": None if self._gaussians is None else self._gaussians.state_dict(),
            "memory": None if self._memory is None else {"x": self._memory[0].clone(), "y": self._memory[1].clone()},
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: State) -> None:
        """Restores the above; tensors go to this bank's device."""
        state = to_device(state, self.device)
        self.feature_map.load_state_dict(state["feature_map"])
        self._gaussians = self._memory = None
        if state["gaussians"] is not None:
            self._gaussians = self._new_gaussians(torch.zeros(1, self.feature_map.n_features, device=self.device))
            self._gaussians.load_state_dict(state["gaussians"])
        if state["memory"] is not None:
            self.start_expert(state["memory"]["x"], state["memory"]["y"])
        self._generator.set_state(state["generator"].cpu())
        self._cache.clear()

    @abstractmethod
    def _new_gaussians(self, rows: Tensor) -> Gaussians:
        """No components yet; their prior is made of the rows of the first memory, (M, d)."""

    @abstractmethod
    def _taken(self, x: Tensor, y: Tensor | None) -> Tensor:
        """A copy of what a memory (M, ...) says of y; ValueError where no expert can be made of it."""

    @abstractmethod
    def _found(self, x: Tensor, y: Tensor) -> None:
        """Makes one expert more of a memory."""

    @abstractmethod
    def _merge(self, k: int, into: int) -> None:
        """Adds expert k to another one and removes it; both are there."""

    def _ready(self) -> Gaussians:
        if self._gaussians is None:
            raise RuntimeError("the bank has no expert yet; call start_expert() and train_expert() before")
        return self._gaussians

    def _rows(self, x: Tensor) -> FeatureRows:
        return self._cache.rows(x if x.device == self.device else x.to(self.device))
