"""Base of banks of conjugate Gaussians: an expert is a set of sums, founded in one step and removed by addition."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor

from cndpm.experts.bank import Bank, DensityOf
from cndpm.experts.chunks import Samples, open_block
from cndpm.experts.features import FeatureMap
from cndpm.experts.gaussian.ledger import WINDOW
from cndpm.experts.gaussian.own_covariance import OwnGaussians
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.learner import Footprint
from cndpm.state import State, StateError, copied, expect, maybe, part, tensor

Gaussians = TypeVar("Gaussians", bound=SharedGaussians | OwnGaussians)

_CPU_CHUNK = 500
"""Samples whose features are computed together: a triangular solve for ten rows reads the whole factor. On a GPU it is
a window, and the following one is computed while the host is busy with this one."""

_ANSWER_SIZE = 1000
"""Samples of one answer: it takes little more memory than their features."""


class AdditiveBank(Bank, Generic[Gaussians]):
    """Gaussians over the features of x; abstract.

    The feature map is where they live; it is fitted on the first memory unless it already is, by random choices of
    `seed`.
    """

    is_additive = True

    def __init__(self, feature_map: FeatureMap, *, seed: int, device: torch.device | str) -> None:
        self.feature_map = feature_map
        self.density_of: DensityOf = "x by sums" if feature_map.keeps_x else "features"
        self.device = torch.device(device)
        self._generator = torch.Generator().manual_seed(seed)
        self._gaussians: Gaussians | None = None
        self._memory: tuple[Samples, Tensor] | None = None
        self._frozen = object()  # stands for the map as it was fitted or loaded
        self._log_volume = 0.0
        self._template: State | None = None

    def open(self, x: Tensor, batch_size: int | None = None, *, start: int = 0) -> Iterator[Samples]:
        x = x.to(self.device)
        if batch_size is None:
            return open_block(x, _ANSWER_SIZE, chunk_size=_ANSWER_SIZE, start=start)
        chunk_size = WINDOW if self.device.type == "cuda" else _CPU_CHUNK
        return open_block(x, batch_size, chunk_size=chunk_size, start=start, in_order=True)

    def found(self, samples: Samples, y: Tensor | None) -> None:
        if self._memory is not None:
            raise RuntimeError("an expert is already in training; finish it with train()")
        self._memory = (samples.select(torch.arange(len(samples))), self._taken(samples.x, y))

    def train(self, max_steps: int) -> float:
        if self._memory is None:
            return 1.0
        if max_steps < 1:
            return 0.0
        self._make_expert(*self._memory)
        self._memory = None
        return 1.0

    def remove(self, k: int, into: int | None) -> None:
        n_experts = len(self.counts)
        if into is None or k == into or not (0 <= k < n_experts and 0 <= into < n_experts):
            raise ValueError(f"remove takes two different experts below {n_experts}; got {k} and {into}")
        self._merge(k, into)

    def _extend(self, other: Self) -> None:
        if len(other.counts) and not len(self.counts):
            self.load_state_dict(other.state_dict())
        elif len(other.counts):
            self._append(other)

    @abstractmethod
    def _append(self, other: Self) -> None:
        """Appends the experts of another bank; both have some."""

    def representation(self) -> State:
        """Returns the fitted features, and what the first memory says about components: their origin and prior."""
        template = self._template if self._gaussians is None else self._gaussians.template()
        return {"feature_map": self.feature_map.state_dict(), "template": template, **self._own_representation()}

    def footprint(self) -> Footprint:
        """Counts means and one triangle of every covariance as parameters; keeps the feature map beside them."""
        n_parameters = 0 if self._gaussians is None else self._gaussians.n_numbers_kept
        n_kept = n_parameters + self.feature_map.n_numbers_kept + self._n_own_numbers()
        return Footprint(n_parameters, n_kept, n_experts=len(self.counts))

    def state_dict(self) -> State:
        memory = None
        if self._memory is not None:
            samples, y = self._memory
            known = samples.known("features", self._frozen)
            memory = {"x": samples.x.clone(), "y": y.clone(), "features": None if known is None else known.clone()}
        return {
            "feature_map": self.feature_map.state_dict(),
            "gaussians": None if self._gaussians is None else self._gaussians.state_dict(),
            "memory": memory,
            "generator": self._generator.get_state(),
            "template": self._template,
            **self._own_state(),
        }

    def load_state_dict(self, state: State) -> None:
        expect(state, {"generator": tensor("bytes", dtype=torch.uint8), "template": maybe(part())})
        state = copied(state, self.device)
        self.feature_map.load_state_dict(state["feature_map"])
        if not self.feature_map.fitted and any(state[name] is not None for name in ("gaussians", "template")):
            raise StateError("experts, or a template of them, are of features that were not fitted")
        self._frozen = object()
        self._log_volume = self.feature_map.log_volume if self.feature_map.fitted else 0.0
        self._load_own_state(state)
        self._gaussians = self._memory = None
        self._template = state["template"]
        if state["gaussians"] is not None:
            self._gaussians = self._restored_gaussians(state["gaussians"])
        if state["memory"] is not None:
            samples = Samples(state["memory"]["x"])
            if state["memory"]["features"] is not None:
                features = state["memory"]["features"]
                samples.derive("features", self._frozen, lambda _: features)
            self._memory = (samples, state["memory"]["y"].cpu())
        self._generator.set_state(state["generator"].cpu())

    def _begin(self, rows: Tensor) -> Gaussians:
        """Returns the components; makes them, none yet, by the template or by the rows of the first memory, (M, d)."""
        if self._gaussians is None:
            known, self._template = self._template, None  # from now on it follows from the components
            self._gaussians = self._new_gaussians(rows) if known is None else self._restored_gaussians(known)
        return self._gaussians

    @abstractmethod
    def _new_gaussians(self, rows: Tensor) -> Gaussians:
        """Makes the components, none yet; their prior comes from the rows of the first memory, (M, d)."""

    @abstractmethod
    def _restored_gaussians(self, state: State) -> Gaussians:
        """Makes components from their state."""

    @abstractmethod
    def _taken(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Copies the targets of a memory (M, ...); raises ValueError where no expert can be made of it."""

    @abstractmethod
    def _make_expert(self, samples: Samples, y: Tensor) -> None:
        """Makes an expert from a memory x (M, ...) and its targets y."""

    @abstractmethod
    def _merge(self, k: int, into: int) -> None:
        """Adds expert k to another one and removes it; both exist."""

    def _own_representation(self) -> State:
        """Returns what this kind of bank fixes beside features and components."""
        return {}

    @abstractmethod
    def _n_own_numbers(self) -> int:
        """Counts the numbers that this kind of bank keeps beside components and features."""

    @abstractmethod
    def _own_state(self) -> State:
        """Returns the state that this kind of bank keeps beside components and features."""

    @abstractmethod
    def _load_own_state(self, state: State) -> None:
        """Restores that state."""

    def _freeze(self, x: Tensor, labels: Tensor | None) -> None:
        """Fits the map on the first memory (M, ...), unless it is fitted, and freezes it."""
        if not self.feature_map.fitted:
            self.feature_map.fit(x, generator=self._generator, labels=labels)
        self._frozen, self._log_volume = object(), self.feature_map.log_volume

    def ready(self) -> Gaussians:
        """Returns the components; raises RuntimeError before there are any."""
        if self._gaussians is None:
            raise RuntimeError("the bank has no expert yet; call found() and train() before")
        return self._gaussians

    def _features(self, samples: Samples) -> Tensor:
        """Returns features (B, d), computed once for each chunk: they are frozen."""
        return samples.derive("features", self._frozen, self._features_of_chunk)

    def _features_of_chunk(self, chunk: Samples) -> Tensor:
        if chunk.parts:
            return torch.cat([self._features(part) for part in chunk.parts])
        return self.feature_map(chunk.x)
