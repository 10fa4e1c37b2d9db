"""The linear layers on top of all experts' columns as one product."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cndpm.experts.neural.packed.packed_columns import PackedColumns, each


class PackedHeads:
    """One linear layer on top of every column that answers, with the same number of outputs."""

    def __init__(self, columns: PackedColumns, heads: Sequence[nn.Linear | None]) -> None:
        self.columns = columns
        self.heads = heads
        answering = [k for k, head in enumerate(heads) if head is not None]
        self.position = {k: i for i, k in enumerate(answering)}
        like = columns.like
        n_outputs = next(head.out_features for head in heads if head is not None)
        self.weight = like.new_zeros(len(answering), n_outputs, columns.ends[-1][-1])
        self.bias = like.new_zeros(len(answering), n_outputs)
        for k in answering:
            self.refresh(k)

    @torch.no_grad()
    def refresh(self, k: int) -> None:
        """Copies the parameters of the head of column k."""
        head = self.heads[k]
        if head is not None:
            self.weight[self.position[k], :, self.columns.seen(k, -1)] = head.weight
            self.bias[self.position[k]] = head.bias

    def __call__(self, top: Tensor) -> Tensor:
        """Returns outputs (batch, n answering, n_outputs) for the last layer's features (batch, total width)."""
        flat = torch.addmm(self.bias.flatten(), top, self.weight.flatten(0, 1).t())
        return flat.view(len(top), *self.bias.shape)


class SeparateHeads:
    """One linear layer on top of each of columns that do not look at each other: no zeros between them."""

    def __init__(self, heads: Sequence[nn.Linear | None]) -> None:
        self.heads = [head for head in heads if head is not None]
        if len(self.heads) < len(heads):
            raise ValueError(
                "columns that share nothing need a head each; got one without: drop the columns of retired experts"
            )
        self.position = {k: k for k in range(len(self.heads))}
        self.weight = torch.stack([head.weight.detach() for head in self.heads])
        self.bias = torch.stack([head.bias.detach() for head in self.heads])

    @torch.no_grad()
    def refresh(self, k: int) -> None:
        """Copies the parameters of the head of column k."""
        self.weight[k], self.bias[k] = self.heads[k].weight, self.heads[k].bias

    def __call__(self, top: Tensor) -> Tensor:
        """Returns outputs (batch, n_experts, n_outputs) for the last layer's features (batch, total width)."""
        return each(top, self.weight, self.bias)


def pack_heads(columns: PackedColumns, heads: Sequence[nn.Linear | None]) -> PackedHeads | SeparateHeads:
    """Packs the heads of columns into one layer."""
    return PackedHeads(columns, heads) if columns.sharing else SeparateHeads(heads)
