"""The columns of all experts as one network: many small layers become few large ones.

Columns with lateral connections are one network whose weights are block-triangular:

    column          0   1   2
             0   [  W           ]
    W_l  =   1   [  W   W       ]        h_l = f(W_l h_{l-1} + b_l),  all columns at once
             2   [  W   W   W   ]

Without them the weights are block-diagonal; fully connected ones are then a batch of small products, whose size grows
with the number of columns and not with its square.

The experts' own modules stay the only truth. A packed copy is refreshed, expert by expert, after an expert has learned,
and is thrown away when an expert comes, goes or changes its shape.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from cndpm.experts.neural.lateral import Column, Features, InstanceNormBlock, LateralCNN, LateralMLP, LateralResNet


class PackedColumns(ABC):
    """Base of packed columns, in the order of birth: knows which rows of a layer belong to which column.

    Columns of retired experts are among them; with `sharing` later columns look at earlier ones.
    """

    def __init__(self, columns: Sequence[Column], *, sharing: bool) -> None:
        self.sharing = sharing
        self.ends = [list(accumulate(widths)) for widths in zip(*(column.widths for column in columns), strict=True)]
        self.like = next(columns[0].parameters()).detach()

    @abstractmethod
    def refresh(self, k: int) -> None:
        """Copies the parameters of column k."""

    @abstractmethod
    def features(self, x: Tensor) -> Features:
        """Returns all columns' features of x (batch, ...), (batch, total width, ...) for every layer."""

    def top(self, features: Features) -> Tensor:
        """Returns the input of the heads, (batch, total width)."""
        return features[-1]

    def start(self, k: int, depth: int) -> int:
        """Returns the index at which the features of a column begin."""
        return self.ends[depth][k - 1] if k else 0

    def own(self, k: int, depth: int) -> slice:
        """Returns the range of a layer's features that a column makes."""
        return slice(self.start(k, depth), self.ends[depth][k])

    def seen(self, k: int, depth: int) -> slice:
        """Returns the range of a layer's features that a column looks at, its own included."""
        return slice(0 if self.sharing else self.start(k, depth), self.ends[depth][k])

    def lateral(self, k: int, features: Features) -> Features:
        """Returns the features of the columns before a column, layer by layer."""
        if not self.sharing or k == 0:
            return ()
        return tuple(feature[:, : self.start(k, depth)] for depth, feature in enumerate(features))


class _PackedMLP(PackedColumns):
    """Fully connected layers."""

    def __init__(self, columns: Sequence[LateralMLP], *, sharing: bool) -> None:
        super().__init__(columns, sharing=sharing)
        self.layers = [[cast(nn.Linear, layer) for layer in column.layers] for column in columns]
        inputs = [self.layers[0][0].in_features, *(ends[-1] for ends in self.ends)]
        self.weights = [self.like.new_zeros(ends[-1], n) for ends, n in zip(self.ends, inputs, strict=False)]
        self.biases = [self.like.new_zeros(ends[-1]) for ends in self.ends]
        for k in range(len(columns)):
            self.refresh(k)

    @torch.no_grad()
    def refresh(self, k: int) -> None:
        for depth, layer in enumerate(self.layers[k]):
            inputs = self.seen(k, depth - 1) if depth else slice(None)
            self.weights[depth][self.own(k, depth), inputs] = layer.weight
            self.biases[depth][self.own(k, depth)] = layer.bias

    def features(self, x: Tensor) -> Features:
        features: list[Tensor] = []
        for weight, bias in zip(self.weights, self.biases, strict=True):
            inputs = features[-1] if features else x.flatten(1)
            features.append(torch.relu_(torch.addmm(bias, inputs, weight.t())))
        return tuple(features)


class _SeparateMLP(PackedColumns):
    """Fully connected layers of columns that do not look at each other and have the same widths."""

    def __init__(self, columns: Sequence[LateralMLP]) -> None:
        super().__init__(columns, sharing=False)
        self.layers = [[cast(nn.Linear, layer) for layer in column.layers] for column in columns]
        by_depth = list(zip(*self.layers, strict=True))
        self.weights = [torch.stack([layer.weight.detach() for layer in row]) for row in by_depth]
        self.biases = [torch.stack([layer.bias.detach() for layer in row]) for row in by_depth]

    @torch.no_grad()
    def refresh(self, k: int) -> None:
        for depth, layer in enumerate(self.layers[k]):
            self.weights[depth][k], self.biases[depth][k] = layer.weight, layer.bias

    def features(self, x: Tensor) -> Features:
        first = torch.addmm(self.biases[0].flatten(), x.flatten(1), self.weights[0].flatten(0, 1).t())
        features = [torch.relu_(first)]
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            features.append(torch.relu_(each(features[-1], weight, bias).flatten(1)))
        return tuple(features)


def each(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Applies every column's own layer to inputs (batch, K inputs), (batch, K, outputs)."""
    own = inputs.view(len(inputs), len(weight), -1).transpose(0, 1)
    return torch.baddbmm(bias.unsqueeze(1), own, weight.transpose(1, 2)).transpose(0, 1)


class _PackedCNN(PackedColumns):
    """Two convolutions and a fully connected layer, as in :class:`LateralCNN`."""

    def __init__(self, columns: Sequence[LateralCNN], *, sharing: bool) -> None:
        super().__init__(columns, sharing=sharing)
        self.columns = columns
        widths = [ends[-1] for ends in self.ends]
        first = columns[0].first.weight
        self.n_pixels = columns[0].third.in_features // columns[0].widths[1]
        self.weights = [
            self.like.new_zeros(widths[0], *first.shape[1:]),
            self.like.new_zeros(widths[1], widths[0], *first.shape[2:]),
            self.like.new_zeros(widths[2], widths[1] * self.n_pixels),
        ]
        self.biases = [self.like.new_zeros(width) for width in widths]
        for k in range(len(columns)):
            self.refresh(k)

    @torch.no_grad()
    def refresh(self, k: int) -> None:
        column = self.columns[k]
        pixels = slice(self.seen(k, 1).start * self.n_pixels, self.seen(k, 1).stop * self.n_pixels)
        inputs = (slice(None), self.seen(k, 0), pixels)
        layers: tuple[nn.Conv2d | nn.Linear, ...] = (column.first, column.second, column.third)
        for depth, layer in enumerate(layers):
            self.weights[depth][self.own(k, depth), inputs[depth]] = layer.weight
            self.biases[depth][self.own(k, depth)] = cast(Tensor, layer.bias)

    def features(self, x: Tensor) -> Features:
        features: list[Tensor] = []
        for weight, bias in zip(self.weights[:2], self.biases[:2], strict=True):
            hidden = functional.conv2d(features[-1] if features else x, weight, bias, padding=1)
            features.append(torch.relu_(functional.max_pool2d(hidden, 2)))
        last = torch.addmm(self.biases[2], features[-1].flatten(1), self.weights[2].t())
        return (*features, torch.relu_(last))


class _PackedResNet(PackedColumns):
    """A convolution and stages of residual blocks, as in :class:`LateralResNet`."""

    def __init__(self, columns: Sequence[LateralResNet], *, sharing: bool) -> None:
        super().__init__(columns, sharing=sharing)
        self.stems = [column.stem for column in columns]
        self.stem = self.like.new_zeros(self.ends[0][-1], *columns[0].stem.weight.shape[1:])
        stages = [[cast(nn.Sequential, stage) for stage in column.stages] for column in columns]
        self.stages = [
            [
                _PackedBlock(cast(Sequence[InstanceNormBlock], blocks), self, stage, is_first=i == 0)
                for i, blocks in enumerate(zip(*of_columns, strict=True))
            ]
            for stage, of_columns in enumerate(zip(*stages, strict=True))
        ]
        for k in range(len(columns)):
            self.refresh(k)

    @torch.no_grad()
    def refresh(self, k: int) -> None:
        self.stem[self.own(k, 0)] = self.stems[k].weight
        for blocks in self.stages:
            for block in blocks:
                block.refresh(k)

    def features(self, x: Tensor) -> Features:
        features = [torch.relu_(functional.instance_norm(functional.conv2d(x, self.stem, padding=1)))]
        for blocks in self.stages:
            hidden = features[-1]
            for block in blocks:
                hidden = block(hidden)
            features.append(hidden)
        return tuple(features)

    def top(self, features: Features) -> Tensor:
        return features[-1].mean(dim=(2, 3))


class _PackedBlock:
    """One block of all columns; the first of a stage sees the stage before it, the others their own column."""

    def __init__(
        self, blocks: Sequence[InstanceNormBlock], columns: PackedColumns, stage: int, *, is_first: bool
    ) -> None:
        self.blocks, self.columns, self.is_first = blocks, columns, is_first
        self.before, self.after = (stage if is_first else stage + 1), stage + 1
        inputs, outputs = columns.ends[self.before][-1], columns.ends[self.after][-1]
        self.stride = blocks[0].first.stride
        self.first = columns.like.new_zeros(outputs, inputs, 3, 3)
        self.second = columns.like.new_zeros(outputs, outputs, 3, 3)
        self.direct = [k for k, block in enumerate(blocks) if block.shortcut is None]
        self.shortcut = columns.like.new_zeros(outputs, inputs, 1, 1) if len(self.direct) < len(blocks) else None

    def refresh(self, k: int) -> None:
        """Copies the parameters of column k; under ``no_grad``."""
        block, rows = self.blocks[k], self.columns.own(k, self.after)
        inputs = self.columns.seen(k, self.before) if self.is_first else rows
        self.first[rows, inputs] = block.first.weight
        self.second[rows, rows] = block.second.weight
        if self.shortcut is not None and block.shortcut is not None:
            self.shortcut[rows, inputs] = block.shortcut.weight

    def __call__(self, x: Tensor) -> Tensor:
        """Maps (batch, inputs, ...) to (batch, outputs, ...)."""
        hidden = functional.conv2d(x, self.first, stride=self.stride, padding=1)
        hidden = functional.conv2d(torch.relu_(functional.instance_norm(hidden)), self.second, padding=1)
        return torch.relu_(functional.instance_norm(hidden) + self._beside(x))

    def _beside(self, x: Tensor) -> Tensor:
        if self.shortcut is None:
            return x
        beside = functional.instance_norm(functional.conv2d(x, self.shortcut, stride=self.stride))
        for k in self.direct:
            beside[:, self.columns.own(k, self.after)] = x[:, self.columns.own(k, self.before)]
        return beside


def pack_columns(columns: Sequence[Column], *, sharing: bool) -> PackedColumns | None:
    """Packs columns into one network; returns None where they cannot be packed, or should not be.

    Zeros are multiplied like any other number. On a GPU that costs less than the launches it saves; on a CPU it does
    not for convolutions, whose blocks are small beside the zeros around them.
    """
    kinds = {type(column) for column in columns}
    if kinds == {LateralMLP}:
        layered = cast(Sequence[LateralMLP], columns)
        return _PackedMLP(layered, sharing=True) if sharing else _SeparateMLP(layered)
    if not next(columns[0].parameters()).is_cuda:
        return None
    return pack_convolutional(columns, sharing=sharing)


def pack_convolutional(columns: Sequence[Column], *, sharing: bool) -> PackedColumns | None:
    """Packs columns into one network, on any device; returns None where they are not all of one convolutional kind."""
    kinds = {type(column) for column in columns}
    if kinds == {LateralCNN}:
        return _PackedCNN(cast(Sequence[LateralCNN], columns), sharing=sharing)
    if kinds == {LateralResNet}:
        return _PackedResNet(cast(Sequence[LateralResNet], columns), sharing=sharing)
    return None
