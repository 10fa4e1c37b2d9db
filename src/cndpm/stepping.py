"""Runs one training step many times, as fast as the device can.

The method does tens of thousands of small steps, so what counts is the overhead of one. This module owns the ways to
keep it low; learners and experts stay readable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from cndpm.state import State

__all__ = ["Optimiser", "repeat"]


def repeat(step: Callable[[], None], n: int) -> None:
    """Calls `step` n times."""
    for _ in range(n):
        step()


class Optimiser:
    """Adam with gradients clipped by value and an optional squared-norm penalty.

    Args:
        parameters: What to train.
        lr: Learning rate.
        clip: Largest absolute value of a gradient's entry.
        weight_decay: λ of the penalty λ‖w‖², applied by :meth:`step` when asked.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], *, lr: float, clip: float, weight_decay: float) -> None:
        self.clip = clip
        self.weight_decay = weight_decay
        self.adam = torch.optim.Adam(list(parameters), lr=lr, fused=True)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What is trained."""
        return self.adam.param_groups[0]["params"]  # type: ignore[no-any-return]

    def step(self, loss: Tensor, *, penalise: bool) -> None:
        """One step down the gradient of a scalar loss."""
        self.adam.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        trained = [p for p in self.parameters if p.grad is not None]
        gradients: list[Tensor] = [p.grad for p in trained]  # type: ignore[misc]
        if penalise and self.weight_decay:
            torch._foreach_add_(gradients, [p.detach() for p in trained], alpha=2 * self.weight_decay)
        torch._foreach_clamp_min_(gradients, -self.clip)
        torch._foreach_clamp_max_(gradients, self.clip)
        self.adam.step()

    def scale_lr(self, factor: float) -> None:
        """Multiplies the learning rate."""
        self.adam.param_groups[0]["lr"] *= factor

    def replace(self, old: nn.Parameter, new: nn.Parameter) -> None:
        """Goes on with an enlarged parameter: the moments of its first rows are kept, the others start at zero."""
        parameters = self.parameters
        parameters[next(i for i, p in enumerate(parameters) if p is old)] = new
        state = self.adam.state.pop(old, None)
        if state:
            self.adam.state[new] = {name: _enlarge(value, new) for name, value in state.items()}

    def state_dict(self) -> State:
        """Learning rate and moments, in the order of the parameters."""
        moments = [{name: value.clone() for name, value in state.items()} for state in self._states()]
        return {"lr": self.adam.param_groups[0]["lr"], "moments": moments}

    def load_state_dict(self, state: State) -> None:
        """Restores the above; the parameters must have the shapes they had."""
        self.adam.param_groups[0]["lr"] = state["lr"]
        for parameter, moments in zip(self.parameters, state["moments"], strict=True):
            self.adam.state.pop(parameter, None)
            if moments:
                self.adam.state[parameter] = {k: v.to(parameter.device, copy=True) for k, v in moments.items()}

    def _states(self) -> Iterator[dict[str, Any]]:
        return (self.adam.state.get(p, {}) for p in self.parameters)


def _enlarge(moment: Tensor, parameter: Tensor) -> Tensor:
    if moment.dim() == 0:
        return moment
    larger = torch.zeros_like(parameter)
    larger[: len(moment)] = moment
    return larger
