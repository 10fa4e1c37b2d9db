"""Differentiable expressions written out by hand where automatic differentiation would touch memory too often.

A sleep spends most of its time on tensors of (latent samples x batch x features) at the end of a decoder. These
functions visit such a tensor as few times as possible and keep one copy of it instead of four.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["sigmoid_squared_error"]


class _SigmoidSquaredError(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, output: Tensor, x: Tensor) -> Tensor:
        """Σ (σ(a) - x)² over the last dimension."""
        squashed = torch.sigmoid(output)
        residual = squashed - x
        error: Tensor = torch.linalg.vector_norm(residual, dim=-1).square_()
        if ctx.needs_input_grad[0]:
            # 2 (s - x) s (1 - s), built in place: the only large tensor that is kept.
            residual.mul_(squashed).mul_(squashed.neg_().add_(1.0))
            ctx.save_for_backward(residual)
        return error

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """d error / d a = 2 (s - x) s (1 - s)."""
        (slope,) = ctx.saved_tensors
        return slope * (2.0 * gradient).unsqueeze(-1), None


def sigmoid_squared_error(output: Tensor, x: Tensor) -> Tensor:
    """Squared error of a sigmoid's output, summed over the last dimension; differentiable once, in `output` only.

    Args:
        output: Values before the sigmoid, (..., d).
        x: Targets, broadcast against `output`; no gradient flows to them.
    """
    error: Tensor = _SigmoidSquaredError.apply(output, x)  # type: ignore[no-untyped-call]
    return error
