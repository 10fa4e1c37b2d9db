"""EfficientNet-Lite: inverted bottlenecks without squeeze-and-excitation, rectified at 6.

The network is made of its weights: their shapes say how many blocks there are and how wide they are. What shapes do not
say is fixed for the family: a stage begins where the number of channels changes, and the seven stages have the strides
of :data:`_STRIDES`. Batch normalisation is folded into the convolutions, as nothing here is trained.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

_STRIDES = (1, 2, 2, 2, 1, 2, 1)
"""Of the first block of each stage; the stem has a stride of 2."""

_EPSILON = 1e-3
"""Added to variances by the batch normalisation that the networks were trained with."""

Weights = Mapping[str, Tensor]


class EfficientNetLite(nn.Module):
    """Maps images (B, 3, H, W), normalised, to pooled outputs of blocks and of the head, (B, n_outputs).

    It is made of its weights by name: ``_conv_stem.weight``, ``_bn0.weight``, ``_blocks.0._...`` and so on; ValueError
    names what is missing.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        names = [name.split(".")[1] for name in weights if name.startswith("_blocks.")]
        n_blocks = 1 + max(map(int, names), default=-1)
        if n_blocks < len(_STRIDES):
            raise ValueError(
                f"an EfficientNet-Lite has at least {len(_STRIDES)} blocks of weights, named '_blocks.0._...' and so "
                f"on; these have {n_blocks}"
            )
        self.stem = _folded(weights, "_conv_stem", "_bn0", stride=2)
        widths, blocks = [len(self.stem.weight)], []
        stage = -1
        for i in range(n_blocks):
            out = len(_named(weights, f"_blocks.{i}._project_conv.weight"))
            starts = out != widths[-1] or i == 0
            stage += starts
            blocks.append(_Block(weights, f"_blocks.{i}.", _STRIDES[stage] if starts else 1, joins=not starts))
            widths.append(out)
        self.blocks = nn.ModuleList(blocks)
        self.head = _folded(weights, "_conv_head", "_bn1", stride=1)
        self._middle = [round(i * n_blocks / 16) for i in (4, 7, 10, 13)]
        self.n_outputs = len(self.head.weight) + 2 * sum(widths[i + 1] for i in self._middle)
        self.eval().requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """Returns means and deviations over places of four middle blocks, and means of the head, (B, n_outputs)."""
        pooled: list[Tensor] = []
        x = functional.relu6(self.stem(x))
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in self._middle:
                deviations, means = torch.std_mean(x, dim=(2, 3), correction=0)
                pooled += [means, deviations]
        pooled.append(functional.relu6(self.head(x)).mean(dim=(2, 3)))
        return torch.cat(pooled, dim=1)


class _Block(nn.Module):
    """Expands, filters every channel by itself, and projects; adds its input where shapes allow."""

    def __init__(self, weights: Weights, prefix: str, stride: int, *, joins: bool) -> None:
        super().__init__()
        expands = f"{prefix}_expand_conv.weight" in weights
        self.expand = _folded(weights, f"{prefix}_expand_conv", f"{prefix}_bn0", stride=1) if expands else None
        self.depthwise = _folded(weights, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride=stride)
        self.project = _folded(weights, f"{prefix}_project_conv", f"{prefix}_bn2", stride=1)
        self._joins = joins

    def forward(self, x: Tensor) -> Tensor:
        inner = x if self.expand is None else functional.relu6(self.expand(x))
        out: Tensor = self.project(functional.relu6(self.depthwise(inner)))
        return x + out if self._joins else out


class _Convolution(nn.Module):
    """A convolution with as much padding as keeps ceil(size / stride) places, more of it behind than before."""

    def __init__(self, weight: Tensor, bias: Tensor, stride: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self._stride = stride
        self._groups = len(weight) if weight.shape[1] == 1 else 1

    def forward(self, x: Tensor) -> Tensor:
        pads = [_padding(size, self.weight.shape[-1], self._stride) for size in (x.shape[-1], x.shape[-2])]
        if all(before == behind for before, behind in pads):
            padding: tuple[int, int] = (pads[1][0], pads[0][0])
        else:
            x, padding = functional.pad(x, (*pads[0], *pads[1])), (0, 0)
        return functional.conv2d(x, self.weight, self.bias, self._stride, padding, groups=self._groups)


def _padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    needed = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return needed // 2, needed - needed // 2


def _folded(weights: Weights, convolution: str, normalisation: str, *, stride: int) -> _Convolution:
    """Makes a convolution that normalises its output as well."""
    names = ("weight", "bias", "running_mean", "running_var")
    gain, shift, mean, variance = (_named(weights, f"{normalisation}.{name}").double() for name in names)
    scale = gain / (variance + _EPSILON).sqrt()
    weight = _named(weights, f"{convolution}.weight").double() * scale[:, None, None, None]
    return _Convolution(weight.float(), (shift - mean * scale).float(), stride)


def _named(weights: Weights, name: str) -> Tensor:
    if name not in weights:
        raise ValueError(f"these are not the weights of an EfficientNet-Lite: {name!r} is missing")
    return weights[name]
