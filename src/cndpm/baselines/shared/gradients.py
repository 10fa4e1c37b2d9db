"""Gradients of single samples, which regularisation (Fisher information) and sample selection are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

SampleLoss = Callable[[Tensor, Tensor], Tensor]
"""The loss of one sample from its network output, (1, n_outputs), and its label, (1,)."""


def per_sample_gradients(network: nn.Module, loss: SampleLoss, x: Tensor, y: Tensor) -> Tensor:
    """Returns the gradient of each sample's loss with respect to all parameters, (batch, n_parameters).

    The network is evaluated as in prediction: with batch statistics a single sample would have no gradient of its own.
    """
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    buffers = dict(network.named_buffers())

    def sample_loss(weights: dict[str, Tensor], x_one: Tensor, y_one: Tensor) -> Tensor:
        output = functional_call(network, (weights, buffers), (x_one[None],))
        return loss(output, y_one[None])

    was_training = network.training
    network.eval()
    gradients = vmap(grad(sample_loss), in_dims=(None, 0, 0))(parameters, x, y)
    network.train(was_training)
    return torch.cat([gradients[name].flatten(1) for name in parameters], dim=1)


def mean_over_gradients(
    network: nn.Module, loss: SampleLoss, x: Tensor, y: Tensor, *, of: Callable[[Tensor], Tensor], chunk: int = 32
) -> Tensor:
    """Returns the mean over samples of an elementwise function `of` each one's gradient, (n_parameters,), by chunks."""
    chunks = zip(torch.split(x, chunk), torch.split(y, chunk), strict=True)
    sums: Iterator[Tensor] = (of(per_sample_gradients(network, loss, *part)).sum(0) for part in chunks)
    total = next(sums)
    for part in sums:
        total = total + part
    return total / len(x)
