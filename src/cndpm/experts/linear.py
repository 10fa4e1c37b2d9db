"""A linear layer whose three gradients are branches of a recorded graph instead of links of a chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cndpm.stepping import side_by_side

__all__ = ["Linear", "branching_linear"]


class _BranchingLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """W x + b."""
        ctx.save_for_backward(x, weight)
        return functional.linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """The input's gradient is what the layers below wait for; the others go beside it."""
        x, weight = ctx.saved_tensors
        rows = gradient.flatten(0, -2)

        tasks: list[Callable[[], Tensor | None]] = [
            lambda: torch.mm(rows, weight).view(x.shape) if ctx.needs_input_grad[0] else None,
            lambda: torch.mm(rows.t(), x.flatten(0, -2)),
            lambda: rows.sum(dim=0),
        ]
        d_x, d_weight, d_bias = side_by_side(tasks)
        return d_x, d_weight, d_bias


def branching_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """W x + b for x (..., n_in); differentiable once."""
    out: Tensor = _BranchingLinear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return out


class Linear(nn.Linear):
    """As torch's; while a step is being recorded, with gradients that go beside each other."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., n_in) to (..., n_out)."""
        if x.is_cuda and torch.is_grad_enabled() and torch.cuda.is_current_stream_capturing():
            return branching_linear(x, self.weight, self.bias)
        return super().forward(x)
