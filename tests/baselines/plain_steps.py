"""Plain gradient steps written out, with which the learners' own are compared.

Learners under comparison take steps of ordinary gradient descent (`PLAIN`), large enough that every term of a loss
moves the weights far beyond rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

RATE = 0.5
PLAIN = {"hidden": 6, "optimizer": "sgd", "learning_rate": RATE, "weight_decay": 0.0, "clip_value": None}


def batch(n: int, seed: int, classes: tuple[int, int] = (0, 4)) -> tuple[Tensor, Tensor]:
    """Inputs (n, 5) and labels (n,) from the given range of classes, which all occur where n allows it."""
    generator = torch.Generator().manual_seed(seed)
    first, stop = classes
    return torch.randn(n, 5, generator=generator), first + torch.arange(n) % (stop - first)


def flat(tensors: tuple[Tensor, ...] | list[Tensor]) -> Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def weights_of(network: nn.Module) -> Tensor:
    return flat(list(network.parameters()))


def gradient_of(loss: Tensor, network: nn.Module) -> Tensor:
    parameters = list(network.parameters())
    found = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    return flat(found)


def after_step(network: nn.Module, loss: Tensor, rate: float = RATE) -> Tensor:
    """The weights after one step down the gradient of a loss."""
    return weights_of(network) - rate * gradient_of(loss, network)


def copied_generator(generator: torch.Generator) -> torch.Generator:
    """A generator that will draw what this one draws next."""
    copy = torch.Generator()
    copy.set_state(generator.get_state())
    return copy
