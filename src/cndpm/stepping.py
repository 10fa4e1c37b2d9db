"""Runs one training step many times, as fast as the device can.

The method does tens of thousands of small steps, so what counts is the overhead of one. This module owns the ways to
keep it low; learners and experts stay readable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from cndpm.state import State

__all__ = ["Optimiser", "repeat"]


def repeat(step: Callable[[], None], n: int) -> None:
    """Calls `step` n times."""
    for _ in range(n):
        step()


class Optimiser:
    """Adam (Kingma & Ba 2015) with gradients clipped by value and an optional squared-norm penalty.

    The gradients never reach the parameters' `grad`, and one fused operation takes the step: of a small step on a CPU
    this saves a fifth.

    Args:
        parameters: What to train.
        lr: Learning rate.
        clip: Largest absolute value of a gradient's entry.
        weight_decay: λ of the penalty λ‖w‖², applied by :meth:`step` when asked.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], *, lr: float, clip: float, weight_decay: float) -> None:
        self.parameters = list(parameters)
        self.lr = lr
        self.clip = clip
        self.weight_decay = weight_decay
        self._moments = [_Moments.of(parameter) for parameter in self.parameters]

    def step(self, loss: Tensor, *, penalise: bool) -> None:
        """One step down the gradient of a scalar loss; parameters that it does not depend on stay as they are."""
        found = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        trained = [i for i, gradient in enumerate(found) if gradient is not None]
        parameters: list[Tensor] = [self.parameters[i] for i in trained]
        gradients = [found[i] for i in trained]
        with torch.no_grad():
            if penalise and self.weight_decay:
                torch._foreach_add_(gradients, parameters, alpha=2 * self.weight_decay)
            torch._foreach_clamp_min_(gradients, -self.clip)
            torch._foreach_clamp_max_(gradients, self.clip)
            self._descend(parameters, gradients, [self._moments[i] for i in trained])

    def _descend(self, parameters: list[Tensor], gradients: list[Tensor], moments: list[_Moments]) -> None:
        adam(
            parameters,
            gradients,
            [m.first for m in moments],
            [m.second for m in moments],
            [],
            [m.step for m in moments],
            fused=True,
            capturable=parameters[0].is_cuda,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.lr,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def scale_lr(self, factor: float) -> None:
        """Multiplies the learning rate."""
        self.lr *= factor

    def replace(self, old: nn.Parameter, new: nn.Parameter) -> None:
        """Goes on with an enlarged parameter: the moments of its first rows are kept, the others start at zero."""
        at = next(i for i, parameter in enumerate(self.parameters) if parameter is old)
        before = self._moments[at]
        self.parameters[at] = new
        self._moments[at] = _Moments(before.step, _enlarge(before.first, new), _enlarge(before.second, new))

    def state_dict(self) -> State:
        """Learning rate and moments, in the order of the parameters."""
        return {"lr": self.lr, "moments": [{k: v.clone() for k, v in m._asdict().items()} for m in self._moments]}

    def load_state_dict(self, state: State) -> None:
        """Restores the above; the parameters must have the shapes they had."""
        self.lr = state["lr"]
        self._moments = [
            _Moments(**{name: value.to(parameter.device, copy=True) for name, value in saved.items()})
            for parameter, saved in zip(self.parameters, state["moments"], strict=True)
        ]


class _Moments(NamedTuple):
    """What Adam remembers of one parameter."""

    step: Tensor
    first: Tensor
    second: Tensor

    @classmethod
    def of(cls, parameter: nn.Parameter) -> _Moments:
        return cls(
            torch.zeros((), device=parameter.device), torch.zeros_like(parameter.data), torch.zeros_like(parameter.data)
        )


def _enlarge(moment: Tensor, parameter: nn.Parameter) -> Tensor:
    larger = torch.zeros_like(parameter.data)
    larger[: len(moment)] = moment
    return larger
