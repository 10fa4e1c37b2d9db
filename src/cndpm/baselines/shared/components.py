"""Parts that learners are composed of; each knows its state and what it keeps.

A learner's state is the states of its parts by name, and its footprint is the sum of theirs, so that neither is written
again for every learner.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import ClassVar, Generic, Literal, TypeVar

import torch
from pydantic import Field
from torch import Tensor, nn

from cndpm.baselines.shared.networks import NetworkName
from cndpm.learner import Footprint, LearnerSettings
from cndpm.state import State, copied
from cndpm.training.recorded_steps import Routine, StepRecorder

N = TypeVar("N", bound=nn.Module)


class LearnerPart:
    """A piece of a learner that holds state; `kept` names its attributes: tensors, some by name, and plain values."""

    kept: ClassVar[tuple[str, ...]] = ()
    device: torch.device

    def footprint(self) -> Footprint:
        """Counts what this part keeps: here every number of its tensors, none of which is trained."""
        values = [getattr(self, name) for name in self.kept]
        tensors = [each for value in values for each in (value.values() if isinstance(value, dict) else [value])]
        return Footprint(0, sum(each.numel() for each in tensors if isinstance(each, Tensor)))

    def state_dict(self) -> State:
        """Returns copies of everything that future behaviour depends on."""
        return {name: copied(getattr(self, name), self.device) for name in self.kept}

    def load_state_dict(self, state: State) -> None:
        """Restores the above to the bit; keeps no reference to `state`."""
        for name in self.kept:
            setattr(self, name, copied(state[name], self.device))


def total_footprint(parts: Iterable[LearnerPart], *, n_experts: int = 1) -> Footprint:
    """Returns the sum of what the parts keep."""
    kept = [part.footprint() for part in parts]
    return Footprint(
        n_parameters=sum(f.n_parameters for f in kept),
        n_numbers_kept=sum(f.n_numbers_kept for f in kept),
        memory_samples=sum(f.memory_samples for f in kept),
        memory_bytes=sum(f.memory_bytes for f in kept),
        n_experts=n_experts,
    )


def module_state(module: nn.Module) -> State:
    """Returns copies of a module's parameters and buffers."""
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


class RandomSource(LearnerPart):
    """A learner's own random numbers. They are drawn on the CPU, so that every device sees the same ones."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.generator = torch.Generator().manual_seed(seed)

    def restarted(self) -> RandomSource:
        """Returns a new source with this one's seed; drawing from it does not advance this one."""
        return RandomSource(self.seed)

    def normal(self, *shape: int) -> Tensor:
        """Draws standard normal numbers of this shape, on the CPU."""
        return torch.randn(*shape, generator=self.generator)

    def state_dict(self) -> State:
        return {"seed": self.seed, "position": self.generator.get_state()}

    def load_state_dict(self, state: State) -> None:
        self.seed = state["seed"]
        self.generator.set_state(state["position"].cpu().clone())


class TensorSlots(LearnerPart):
    """Named tensors that a learner carries along (importances, running sums); a name without a tensor is empty."""

    kept = ("values",)

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.values: dict[str, Tensor] = {}


class FrozenCopy(LearnerPart, Generic[N]):
    """The network as it was when a task ended; None before the first."""

    def __init__(self, original: N) -> None:
        self.original = original
        self.network: N | None = None

    def take(self) -> N:
        """Copies the original as it is now, ready to answer and never to learn."""
        self.network = copy.deepcopy(self.original).eval().requires_grad_(False)
        return self.network

    def footprint(self) -> Footprint:
        """Counts the copied weights as kept, not as trained."""
        n_numbers = 0 if self.network is None else sum(p.numel() for p in self.network.parameters())
        return Footprint(0, n_numbers)

    def state_dict(self) -> State:
        return {"network": None if self.network is None else module_state(self.network)}

    def load_state_dict(self, state: State) -> None:
        self.network = None
        if state["network"] is not None:
            self.take().load_state_dict(state["network"])


class NetworkSettings(LearnerSettings):
    """Settings of every learner with one network."""

    network: NetworkName = Field("auto", description="auto: ResNet-18 for 3 x 32 x 32 images, else the MLP")
    hidden: int = Field(400, ge=1, description="units of each of the two hidden layers of the MLP and the VAE")
    latent: int = Field(32, ge=1, description="latent dimension of the VAE, on unlabelled streams")
    test_latent_samples: int = Field(16, ge=1, description="latent samples over which log_prob averages the ELBO")
    optimizer: Literal["sgd", "adam"] = Field("adam", description="optimiser")
    learning_rate: float = Field(3e-4, gt=0, le=10, description="step size")
    momentum: float = Field(0.0, ge=0, lt=1, description="momentum of sgd; adam ignores it")
    weight_decay: float = Field(1e-5, ge=0, description="squared-norm penalty on the weights")
    clip_value: float | None = Field(0.5, gt=0, description="largest absolute value of a gradient; null: no limit")


class Trainer(LearnerPart):
    """A network on its device and its optimiser; one step is gradient, clip by value, update."""

    def __init__(self, network: nn.Module, settings: NetworkSettings) -> None:
        self.network = network
        self.clip_value = settings.clip_value
        self.parameters = list(network.parameters())
        lr, device = settings.learning_rate, self.parameters[0].device
        self.recorder = StepRecorder(device, torch.Generator(device))
        self._routines: dict[Callable[..., tuple[Tensor, ...] | None], Routine] = {}
        self.optimizer: torch.optim.Optimizer
        if settings.optimizer == "adam":
            self.optimizer = torch.optim.Adam(
                self.parameters, lr=lr, weight_decay=settings.weight_decay, fused=True, capturable=device.type == "cuda"
            )
        else:
            self.optimizer = torch.optim.SGD(
                self.parameters, lr=lr, momentum=settings.momentum, weight_decay=settings.weight_decay, fused=True
            )

    def step(self, loss: Tensor) -> None:
        """Takes one step down the gradient of a scalar loss."""
        found = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        for parameter, gradient in zip(self.parameters, found, strict=True):
            # Fused optimisers walk through memory: a gradient must lie there as its parameter does.
            parameter.grad = None if gradient is None else gradient.contiguous()
        self._update()

    def recorded(self, function: Callable[..., tuple[Tensor, ...] | None], *inputs: Tensor) -> tuple[Tensor, ...]:
        """Calls `function(*inputs)`, which takes steps of this trainer; a GPU records the call once and replays it.

        The function is a method of the learner, draws no random numbers, and depends on nothing but its inputs and
        tensors that stay in their place.
        """
        routine = self._routines.setdefault(function, self.recorder.routine(function, draws=False))
        return routine(*inputs)

    def gradient(self, loss: Tensor) -> Tensor:
        """Returns the gradient of a scalar loss as one vector, (n_parameters,); changes nothing."""
        parts = torch.autograd.grad(loss, self.parameters, allow_unused=True, materialize_grads=True)
        return torch.cat([part.reshape(-1) for part in parts])

    def weights(self) -> Tensor:
        """Returns a copy of all parameters as one vector, (n_parameters,)."""
        return torch.cat([p.detach().reshape(-1) for p in self.parameters])

    def step_along(self, gradient: Tensor) -> None:
        """Takes one step down a given gradient, (n_parameters,)."""
        sizes = [p.numel() for p in self.parameters]
        for parameter, part in zip(self.parameters, torch.split(gradient, sizes), strict=True):
            parameter.grad = part.view_as(parameter).clone()
        self._update()

    def set_learning_rate(self, learning_rate: float) -> None:
        """Changes the step size and drops recorded steps, which hold the old one."""
        self._routines.clear()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def _update(self) -> None:
        if self.clip_value is not None:
            nn.utils.clip_grad_value_(self.parameters, self.clip_value)
        self.optimizer.step()

    def footprint(self) -> Footprint:
        """Counts the trained weights, and the buffers that prediction needs."""
        n_parameters = sum(p.numel() for p in self.parameters)
        return Footprint(n_parameters, n_parameters + sum(b.numel() for b in self.network.buffers()))

    def state_dict(self) -> State:
        state = self.optimizer.state_dict()
        moments = {
            str(index): {name: value.clone() for name, value in entry.items() if value is not None}
            for index, entry in state["state"].items()
        }
        return {
            "network": module_state(self.network),
            "moments": moments,
            "learning_rate": state["param_groups"][0]["lr"],
        }

    def load_state_dict(self, state: State) -> None:
        self.network.load_state_dict(state["network"])
        moments = {
            int(index): {name: value.clone() for name, value in entry.items()}
            for index, entry in state["moments"].items()
        }
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self.set_learning_rate(state["learning_rate"])
