"""States arrive on the CPU; a bank's statistics live on its device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cndpm.state import State

__all__ = ["to_device"]


def to_device(state: State, device: torch.device) -> State:
    """A copy of `state` with every tensor on `device`."""
    return {name: _copied(item, device) for name, item in state.items()}


def _copied(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to(device, copy=True)
    if isinstance(value, dict):
        return to_device(value, device)
    return [_copied(item, device) for item in value] if isinstance(value, list) else value
