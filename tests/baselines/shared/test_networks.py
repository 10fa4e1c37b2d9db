"""The shared networks have the paper's sizes and draw their weights from the caller's generator."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from cndpm.baselines.shared.networks import build_classifier, build_vae


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def count(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def test_mlp_has_the_papers_478_thousand_parameters():
    assert round(count(build_classifier("auto", (1, 28, 28), 10, seeded())) / 1e3) == 478


def test_vae_has_the_papers_988_thousand_parameters():
    assert round(count(build_vae((1, 28, 28), seeded())) / 1e3) == 988


@pytest.mark.parametrize("n_classes", [10, 100])
def test_resnet18_has_the_papers_11_million_parameters(n_classes: int):
    network = build_classifier("auto", (3, 32, 32), n_classes, seeded())
    assert round(count(network) / 1e6, 1) == 11.2
    assert network(torch.rand(2, 3, 32, 32)).shape == (2, n_classes)


def test_weights_follow_the_generator_and_have_pytorchs_usual_spread():
    first, second, other = (build_classifier("mlp", (30,), 3, seeded(seed)) for seed in (1, 1, 2))
    weight = first.features[1][0].weight
    assert torch.equal(weight, second.features[1][0].weight)
    assert not torch.equal(weight, other.features[1][0].weight)
    bound = 1 / math.sqrt(30)
    assert weight.abs().max() <= bound
    assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)  # of a uniform distribution


def test_resnet18_refuses_vectors_with_the_remedy():
    with pytest.raises(ValueError, match="network='mlp'"):
        build_classifier("resnet18", (784,), 10, seeded())


def test_an_mlp_has_relus_between_its_layers_and_none_at_the_end():
    network = build_classifier("mlp", (2, 3), 4, seeded(), hidden=5)
    x = torch.randn(7, 2, 3, generator=seeded())
    h = x.reshape(7, 6)
    for layer in (network.features[1][0], network.features[1][2]):
        h = (h @ layer.weight.T + layer.bias).clamp_min(0)
    torch.testing.assert_close(network.features(x), h)
    torch.testing.assert_close(network(x), h @ network.head.weight.T + network.head.bias)
