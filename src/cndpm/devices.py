"""Resolves the name of a device, as given on a command line or to an estimator."""

from __future__ import annotations

import os

import torch

from cndpm.validation import ConfigError

__all__ = ["resolve_device", "total_memory"]


def resolve_device(name: object) -> str:
    """Returns the device that `name` stands for, once it is known to exist; "auto" is the GPU if there is one.

    Raises:
        TypeError: It is no name of a device.
        ConfigError: There is no such device.

    Example:
        >>> resolve_device("cpu")
        'cpu'
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
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {name!r} was asked for, but torch sees no GPU here; use 'auto' or 'cpu'")
    return str(name)


def total_memory(device: torch.device) -> float:
    """Returns the bytes of memory that a device has; inf where the system does not tell.

    Example:
        >>> total_memory(torch.device("cpu")) > 2**20
        True
    """
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return float("inf")
