"""Resolves the name of a device, as given on a command line or to an estimator."""

from __future__ import annotations

import torch

from cndpm.validation import ConfigError

__all__ = ["resolve_device"]


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
    if device.type == "meta":
        raise ConfigError("device 'meta' holds no numbers, so nothing can be learned there; use 'auto' or 'cpu'")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {name!r} was asked for, but torch sees no GPU here; use 'auto' or 'cpu'")
    return str(name)
