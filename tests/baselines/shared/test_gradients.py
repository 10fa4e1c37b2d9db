"""Gradients of single samples against one backward pass each."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cndpm.baselines.shared.penalty import mean_over_gradients, per_sample_gradients


def network_with_statistics() -> nn.Module:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
    network(torch.randn(20, 4))  # gives the normalisation something to remember
    return network


def one_by_one(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    network.eval()
    losses = [F.cross_entropy(network(x[i : i + 1]), y[i : i + 1]) for i in range(len(x))]
    rows = [torch.autograd.grad(loss, list(network.parameters())) for loss in losses]
    network.train()
    return torch.stack([torch.cat([part.reshape(-1) for part in row]) for row in rows])


def test_each_sample_has_the_gradient_it_has_alone_in_prediction():
    network, x, y = network_with_statistics(), torch.randn(7, 4), torch.arange(7) % 3
    before = {name: value.clone() for name, value in network.state_dict().items()}
    found = per_sample_gradients(network, F.cross_entropy, x, y)
    assert network.training
    torch.testing.assert_close(found, one_by_one(network, x, y))
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_a_mean_over_gradients_does_not_depend_on_the_chunks():
    network, x, y = network_with_statistics(), torch.randn(7, 4), torch.arange(7) % 3
    expected = one_by_one(network, x, y).square().mean(0)
    for chunk in (1, 3, 7, 32):
        found = mean_over_gradients(network, F.cross_entropy, x, y, of=Tensor.square, chunk=chunk)
        torch.testing.assert_close(found, expected)
