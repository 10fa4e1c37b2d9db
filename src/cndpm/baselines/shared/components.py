"""Parts that learners are composed of; each knows its state and what it keeps.

A learner's state is the states of its parts by name, and its footprint is the sum of theirs, so that neither is written
again for every learner.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from cndpm.learner import Footprint
from cndpm.state import State

N = TypeVar("N", bound=nn.Module)


class LearnerPart(Protocol):
    """A piece of a learner that holds state."""

    def footprint(self) -> Footprint:
        """Counts what this part keeps."""

    def state_dict(self) -> State:
        """Returns copies of everything that future behaviour depends on."""

    def load_state_dict(self, state: State) -> None:
        """Restores the above to the bit; keeps no reference to `state`."""


def total_footprint(parts: Iterable[LearnerPart], *, n_experts: int = 1) -> Footprint:
    """Returns the sum of what the parts keep."""
    kept = [part.footprint() for part in parts]
    return Footprint(
        n_parameters=sum(f.n_parameters for f in kept),
        n_numbers_kept=sum(f.n_numbers_kept for f in kept),
        memory_samples=sum(f.memory_samples for f in kept),
        memory_bytes=sum(f.memory_bytes for f in kept),
        n_experts=n_experts,
    )


def module_state(module: nn.Module) -> State:
    """Returns copies of a module's parameters and buffers."""
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def load_module(module: nn.Module, state: State) -> None:
    """Copies a state into the module."""
    module.load_state_dict(state)


class RandomSource:
    """A learner's own random numbers. They are drawn on the CPU, so that every device sees the same ones."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.generator = torch.Generator().manual_seed(seed)

    def restarted(self) -> RandomSource:
        """Returns a new source with this one's seed; drawing from it does not advance this one."""
        return RandomSource(self.seed)

    def normal(self, *shape: int) -> Tensor:
        """Draws standard normal numbers of this shape, on the CPU."""
        return torch.randn(*shape, generator=self.generator)

    def footprint(self) -> Footprint:
        """Counts nothing."""
        return Footprint(0, 0)

    def state_dict(self) -> State:
        return {"seed": self.seed, "position": self.generator.get_state()}

    def load_state_dict(self, state: State) -> None:
        self.seed = state["seed"]
        self.generator.set_state(state["position"].cpu().clone())


class TensorSlots:
    """Named tensors that a learner carries along (importances, running sums); a name without a tensor is empty."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.values: dict[str, Tensor] = {}

    def footprint(self) -> Footprint:
        """Counts every number as a statistic."""
        return Footprint(0, sum(value.numel() for value in self.values.values()))

    def state_dict(self) -> State:
        return {name: value.clone() for name, value in self.values.items()}

    def load_state_dict(self, state: State) -> None:
        self.values = {name: value.to(self.device, copy=True) for name, value in state.items()}


class FrozenCopy(Generic[N]):
    """The network as it was when a task ended; None before the first."""

    def __init__(self, original: N) -> None:
        self.original = original
        self.network: N | None = None

    def take(self) -> N:
        """Copies the original as it is now, ready to answer and never to learn."""
        self.network = copy.deepcopy(self.original).eval().requires_grad_(False)
        return self.network

    def footprint(self) -> Footprint:
        """Counts the copied weights as kept, not as trained."""
        n_numbers = 0 if self.network is None else sum(p.numel() for p in self.network.parameters())
        return Footprint(0, n_numbers)

    def state_dict(self) -> State:
        return {"network": None if self.network is None else module_state(self.network)}

    def load_state_dict(self, state: State) -> None:
        self.network = None
        if state["network"] is not None:
            load_module(self.take(), state["network"])
