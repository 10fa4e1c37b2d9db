"""Resolves the names of devices, and takes random states from one device to another."""

from __future__ import annotations

import hashlib
import os

import torch
from torch import Tensor

from cndpm.validation import ConfigError


def resolve_device(name: object) -> str:
    """Returns the device that `name` stands for, once it is known to exist; "auto" is the GPU if there is one.

    Raises:
        TypeError: It is no name of a device.
        ConfigError: There is no such device.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not isinstance(name, str | torch.device):
        raise TypeError(f"device must be 'auto' or a torch device such as 'cpu' or 'cuda'; got {name!r}")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(
            f"device must be 'auto' or a torch device such as 'cpu', 'cuda' or 'cuda:0'; got {name!r}"
        ) from None
    if device.type == "meta":
        raise ConfigError("device 'meta' holds no numbers, so nothing can be learned there; use 'auto' or 'cpu'")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {name!r} was asked for, but torch sees no GPU here; use 'auto' or 'cpu'")
    return str(name)


def restore_generator(generator: torch.Generator, state: Tensor) -> None:
    """Restores the state of a source of random numbers.

    On the device where the state is from it goes on to the same bits. Another device has other sources: there it begins
    anew from a seed that follows from the state.
    """
    state = state.cpu()
    if len(state) == len(generator.get_state()):
        generator.set_state(state)
    else:
        digest = hashlib.sha256(bytes(state.tolist())).digest()
        generator.manual_seed(int.from_bytes(digest[:7], "little"))


def total_memory(device: torch.device) -> float:
    """Returns the bytes of memory that a device has; inf where the system does not tell."""
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return float("inf")
