"""Differentiable expressions written out by hand where automatic differentiation would touch memory too often.

A sleep spends most of its time on tensors of (latent samples x batch x features) at the end of a decoder: a linear
layer and a likelihood that sums over the features. These functions do both at once. Of the large tensors only the
slope, the derivative by the layer's output, is kept, in a buffer that is used again in the next step; the gradient that
arrives is one number per row, so it multiplies the small factors and never the slope:

    dW = slopeᵀ (g ⊙ h)        dh = g ⊙ (slope W)        db = slopeᵀ g
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cndpm.experts.chunks import borrow, give_back

_ROWS = 256
"""Rows treated at once where nothing is kept, so that an answer takes little memory whatever its batch."""

_Evaluate = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(output a, slope to fill, x) -> value per row, (S, B, d), (S, B, d), (B, d) -> (S, B); `a` may be overwritten."""


def _squared_error(output: Tensor, slope: Tensor, x: Tensor) -> Tensor:
    """Returns Σ (s - x)² with s = σ(a); half its slope is (s - x) s (1 - s)."""
    squashed = torch.sigmoid(output, out=output)
    torch.sub(squashed, x, out=slope)
    error: Tensor = torch.linalg.vector_norm(slope, dim=-1).square_()
    torch.ops.aten.sigmoid_backward.grad_input(slope, squashed, grad_input=slope)
    return error


def _bernoulli(output: Tensor, slope: Tensor, x: Tensor) -> Tensor:
    """Returns Σ x·a - softplus(a); its slope is x - σ(a)."""
    value = torch.mul(output, x, out=slope).sum(dim=-1)
    value -= torch.ops.aten.softplus.out(output, out=slope).sum(dim=-1)
    torch.sub(x, torch.sigmoid(output, out=output), out=slope)
    return value


class _LinearThen(torch.autograd.Function):
    """A linear layer followed by a sum over its outputs."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, x: Tensor, evaluate: _Evaluate, factor: float
    ) -> Tensor:
        """Evaluates layer and sum; `evaluate` fills the slope up to `factor`."""
        if not any(ctx.needs_input_grad[:3]):
            return _in_pieces(hidden, weight, bias, x, evaluate)
        shape = (*hidden.shape[:-1], len(weight))
        output, slope = borrow(shape, hidden), borrow(shape, hidden)
        torch.addmm(bias, hidden.flatten(0, -2), weight.t(), out=output.flatten(0, -2))
        value = evaluate(output, slope, x)
        give_back(output)
        ctx.save_for_backward(hidden, weight)
        ctx.slope, ctx.factor = slope, factor
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Computes the three products of the module's docstring."""
        hidden, weight = ctx.saved_tensors
        if ctx.slope is None:
            raise RuntimeError("this expression can be differentiated once only; evaluate it again")
        slope, ctx.slope = ctx.slope.flatten(0, -2), None
        rows = (gradient * ctx.factor).flatten().unsqueeze(1)
        d_hidden = torch.mm(slope, weight).mul_(rows).view(hidden.shape)
        d_weight = torch.mm(slope.t(), hidden.flatten(0, -2) * rows)
        d_bias = torch.mv(slope.t(), rows.squeeze(1))
        give_back(slope)
        return d_hidden, d_weight, d_bias, None, None, None


def _in_pieces(hidden: Tensor, weight: Tensor, bias: Tensor, x: Tensor, evaluate: _Evaluate) -> Tensor:
    """Returns the value without a slope, for (S, B, h) some of the S at a time."""
    n = max(1, _ROWS // hidden.shape[1])
    shape = (min(n, len(hidden)), hidden.shape[1], len(weight))
    output, slope = borrow(shape, hidden), borrow(shape, hidden)
    values = []
    for part in torch.split(hidden, n):
        torch.addmm(bias, part.flatten(0, -2), weight.t(), out=output[: len(part)].flatten(0, -2))
        values.append(evaluate(output[: len(part)], slope[: len(part)], x))
    give_back(output, slope)
    return torch.cat(values)


class _Reparametrise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, code: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Returns z = μ + σ ε and KL = ½ Σ (μ² + σ² - 1 - log σ²)."""
        mean, log_variance = code.chunk(2, dim=1)
        std = (0.5 * log_variance).exp_()
        ctx.save_for_backward(mean, std, noise)
        kl = torch.addcmul(-log_variance, mean, mean).addcmul_(std, std).sum(dim=1)
        return torch.addcmul(mean, std, noise), kl.sub_(mean.shape[1]).mul_(0.5)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_z: Tensor, d_kl: Tensor) -> tuple[Tensor, None]:
        """Differentiates both by hand, since they share factors."""
        mean, std, noise = ctx.saved_tensors
        weight = d_kl.unsqueeze(1)
        d_mean = d_z.sum(dim=0).addcmul_(mean, weight)
        d_log_variance = (d_z * noise).sum(dim=0).mul_(std).addcmul_(std.square().sub_(1.0), weight).mul_(0.5)
        return torch.cat([d_mean, d_log_variance], dim=1), None


def reparametrise(code: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Returns z (S, B, latent) of q(z | x) and KL(q || N(0, I)), (B,); differentiable once, and not in the noise."""
    drawn: tuple[Tensor, Tensor] = _Reparametrise.apply(code, noise)  # type: ignore[no-untyped-call]
    return drawn


class _SigmoidSquaredError(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, output: Tensor, x: Tensor) -> Tensor:
        """Computes the error and keeps the slope alone."""
        squashed = torch.sigmoid(output)
        slope = squashed - x
        error: Tensor = torch.linalg.vector_norm(slope, dim=-1).square_()
        torch.ops.aten.sigmoid_backward.grad_input(slope, squashed, grad_input=slope)
        ctx.save_for_backward(slope)
        return error

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Returns d error / d a = 2 (s - x) s (1 - s)."""
        (slope,) = ctx.saved_tensors
        return slope * (2.0 * gradient).unsqueeze(-1), None


def sigmoid_squared_error(output: Tensor, x: Tensor) -> Tensor:
    """Returns Σ (σ(a) - x)² over the last dimension; differentiable once, in the output a (..., d) only."""
    if not (torch.is_grad_enabled() and output.requires_grad):
        norm: Tensor = torch.linalg.vector_norm(torch.sigmoid(output).sub_(x), dim=-1)
        return norm.square()
    error: Tensor = _SigmoidSquaredError.apply(output, x)  # type: ignore[no-untyped-call]
    return error


def linear_sigmoid_squared_error(hidden: Tensor, weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    """Returns Σ (σ(W h + b) - x)², (S, B), of h (S, B, n_hidden) and x (B, d); differentiable once, and not in x."""
    error: Tensor = _LinearThen.apply(hidden, weight, bias, x, _squared_error, 2.0)  # type: ignore[no-untyped-call]
    return error


def linear_bernoulli_log_prob(hidden: Tensor, weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    """Returns log p(x), (S, B), of binary features with logits W h + b; differentiable once, and not in x (B, d)."""
    log_prob: Tensor = _LinearThen.apply(hidden, weight, bias, x, _bernoulli, 1.0)  # type: ignore[no-untyped-call]
    return log_prob
