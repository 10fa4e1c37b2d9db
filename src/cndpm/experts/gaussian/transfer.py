"""Between devices: states arrive on the CPU, random numbers come from where their generator is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cndpm.state import State

__all__ = ["normal_draws", "to_device"]


def normal_draws(shape: tuple[int, ...], generator: torch.Generator, device: torch.device) -> Tensor:
    """Standard normal draws of a generator of any device, brought to `device`; float64."""
    return torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device).to(device)


def to_device(state: State, device: torch.device) -> State:
    """A copy of `state` with every tensor on `device`."""
    return {name: _copied(item, device) for name, item in state.items()}


def _copied(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to(device, copy=True)
    if isinstance(value, dict):
        return to_device(value, device)
    return [_copied(item, device) for item in value] if isinstance(value, list) else value
