"""Residual blocks and the sizes of ResNet-18's stages."""

from __future__ import annotations

import torch
from torch import nn

from cndpm.baselines.shared.networks import ResidualBlock, build_classifier, initialise


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_residual_block_adds_its_shortcut():
    block = initialise(ResidualBlock(2, 2, stride=1), seeded()).eval()
    nn.init.zeros_(block.norm2.weight)  # nothing but the shortcut is left
    x = torch.randn(1, 2, 4, 4, generator=seeded())
    torch.testing.assert_close(block(x), x.clamp_min(0))
    wider = initialise(ResidualBlock(2, 4, stride=2), seeded()).eval()
    nn.init.zeros_(wider.norm2.weight)
    torch.testing.assert_close(wider(x), wider.shortcut(x).clamp_min(0))
    assert wider(x).shape == (1, 4, 2, 2)


def test_resnet18_halves_the_image_three_times():
    features = build_classifier("resnet18", (3, 32, 32), 2, seeded()).features
    sizes = []
    for block in list(features)[3:11]:
        block.register_forward_hook(lambda _module, _inputs, output: sizes.append(tuple(output.shape[1:])))
    features(torch.rand(2, 3, 32, 32, generator=seeded()))
    assert sizes == [(64, 32, 32)] * 2 + [(128, 16, 16)] * 2 + [(256, 8, 8)] * 2 + [(512, 4, 4)] * 2
