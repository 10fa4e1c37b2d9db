"""Columns with lateral connections: a later expert reuses what earlier ones compute, and cannot change it.

Each expert is a *column* of layers. A layer of column k sees the previous layer of all columns up to k; the features of
earlier columns arrive detached, so no gradient reaches them (progressive networks, Rusu et al. 2016; section 3.2 of
the paper). The features of several columns are joined layer by layer, earliest first: together the columns form one
network with block-triangular weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

Features = tuple[Tensor, ...]
"""One tensor (batch, width, ...) for every layer that later columns may look at; empty where nothing is shared."""


class Column(nn.Module, ABC):
    """One expert's layers, of `widths` units or channels, of which later columns see the features."""

    widths: tuple[int, ...]
    out_features: int

    @abstractmethod
    def forward(self, x: Tensor, lateral: Features) -> Features:
        """Returns this column's own features, layer by layer; `lateral` are those of all earlier columns."""

    @abstractmethod
    def top(self, own: Features, lateral: Features) -> Tensor:
        """Returns the last layer of all columns up to this one, the input of its head, (batch, out_features)."""

    @staticmethod
    def beside(lateral: Features, depth: int, own: Tensor) -> Tensor:
        """Joins a layer's own features to those of the earlier columns, (batch, width, ...)."""
        return torch.cat([lateral[depth], own], dim=1) if lateral else own


class LateralMLP(Column):
    r"""One column of fully connected layers.

    .. math:: h_l = \mathrm{ReLU}(W_l [\bar h_{l-1}, h_{l-1}] + b_l)

    where :math:`\bar h` are the features of all earlier columns, of `lateral_widths` units, and :math:`h_0 = x` is not
    repeated.
    """

    def __init__(self, in_features: int, widths: Sequence[int], lateral_widths: Sequence[int] = ()) -> None:
        super().__init__()
        earlier = tuple(lateral_widths) or (0,) * len(widths)
        if len(earlier) != len(widths):
            raise ValueError(f"one lateral width per layer is needed; got {len(earlier)} for {len(widths)} layers")
        self.widths = tuple(widths)
        self.out_features = earlier[-1] + widths[-1]
        inputs = [in_features, *(before + own for before, own in zip(earlier, widths, strict=True))][:-1]
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in zip(inputs, widths, strict=True))

    def forward(self, x: Tensor, lateral: Features) -> Features:
        features: list[Tensor] = []
        inputs = x.flatten(1)
        for depth, layer in enumerate(self.layers):
            features.append(torch.relu_(layer(inputs)))
            inputs = self.beside(lateral, depth, features[-1])
        return tuple(features)

    @staticmethod
    def top(own: Features, lateral: Features) -> Tensor:
        return Column.beside(lateral, -1, own[-1])
