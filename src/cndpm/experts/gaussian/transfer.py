"""Brings states, and random numbers drawn on their generator's device, to the device where they are needed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cndpm.state import State

__all__ = ["normal_draws", "to_device"]


def normal_draws(shape: tuple[int, ...], generator: torch.Generator, device: torch.device) -> Tensor:
    """Returns standard normal draws, float64.

    Args:
        shape: Shape of the result.
        generator: Source of random numbers, on any device.
        device: Where the draws are brought.
    """
    return torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device).to(device)


def to_device(state: State, device: torch.device) -> State:
    """Copies a state.

    Args:
        state: Tensors and plain values, nested in dictionaries and lists.
        device: Where every tensor of the copy lies.
    """
    return {name: _copied(item, device) for name, item in state.items()}


def _copied(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to(device, copy=True)
    if isinstance(value, dict):
        return to_device(value, device)
    return [_copied(item, device) for item in value] if isinstance(value, list) else value
