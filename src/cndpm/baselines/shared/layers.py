"""Layers of the shared networks: fully connected ones, and ResNet-18's features for small images."""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn


def mlp(widths: list[int]) -> nn.Sequential:
    """Returns linear layers of the given widths with ReLU between them, none after the last."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut (He et al. 2016, Figure 2)."""

    def __init__(self, n_in: int, n_out: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(n_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.shortcut = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, n_in, h, w) to (batch, n_out, h / stride, w / stride)."""
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


class ResNet18Features(nn.Sequential):
    """ResNet-18 for small images: a 3 x 3 stem, four stages of two blocks, global average; (batch, 512)."""

    def __init__(self, n_channels: int) -> None:
        stem: list[nn.Module] = [nn.Conv2d(n_channels, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        widths = [64, 64, 128, 256, 512]
        for stage, (n_in, n_out) in enumerate(pairwise(widths)):
            stem += [ResidualBlock(n_in, n_out, stride=1 if stage == 0 else 2), ResidualBlock(n_out, n_out, stride=1)]
        super().__init__(*stem, nn.AdaptiveAvgPool2d(1), nn.Flatten())
