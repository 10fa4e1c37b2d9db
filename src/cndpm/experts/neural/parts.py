"""What an expert is made of: a density of x and a predictor of y, both open to classes of the user's own.

A minimal density of one's own:

    class Histogram(Density):
        def __init__(self, input_shape, *, lateral_widths=()): ...
        def log_prob(self, x, lateral=()): ...        # (batch,)

A part that shares nothing ignores `lateral`. One that does exposes `features`, and later experts receive them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from cndpm.experts.neural.lateral import Features

__all__ = ["Density", "NoDensity", "Part", "Predictor"]


class Part(nn.Module, ABC):
    """A network of one expert, possibly one column of a network shared by all."""

    @property
    def feature_widths(self) -> tuple[int, ...]:
        """Width of each layer that later experts may look at; empty when nothing is shared."""
        return ()

    def features(self, x: Tensor, lateral: Features) -> Features:
        """This column's features for later experts, one tensor per layer; `lateral` are the earlier columns'."""
        return ()

    def answer(self, x: Tensor, own: Features | None, lateral: Features) -> Tensor:
        """What all experts are asked together: `log_prob` of a density, `predictive` of a predictor.

        Args:
            x: (batch, ...).
            own: This column's features of x where they are known already; None where they are not.
            lateral: The earlier columns' features.
        """
        raise NotImplementedError(f"{type(self).__name__} is neither a density nor a predictor")

    def wake(self) -> None:
        """Called once when the expert has slept and is about to answer."""

    def stepped(self) -> None:
        """Called after every step of its optimiser that follows; must not wait for the device."""

    def strip(self) -> None:
        """Drops what is not needed for :meth:`features`; called when the expert is pruned and later ones look at it."""


class Density(Part):
    """p(x | k)."""

    @abstractmethod
    def log_prob(self, x: Tensor, lateral: Features = ()) -> Tensor:
        """log p(x | k), (batch,); deterministic."""

    def answer(self, x: Tensor, own: Features | None, lateral: Features) -> Tensor:
        return self.log_prob(x, lateral)

    def loss(self, x: Tensor, lateral: Features, generator: torch.Generator) -> Tensor:
        """What training minimises, (batch,); may draw noise from `generator`."""
        return -self.log_prob(x, lateral)

    def check(self, x: Tensor) -> None:
        """Raises ValueError, with the remedy, where x is outside the density's domain."""

    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        """log of a kernel around each centre, comparable in scale with `log_prob`: (batch, n_centres).

        The provisional model of the memory is the mean of these kernels. By default Gaussian, as wide as the centres'
        mean distance to their nearest neighbours.
        """
        return gaussian_kernel_log_prob(x, centres, nearest_neighbour_variance(centres))

    def inherit(self, parent: Density) -> None:
        """Begins where a density of the same kind and shape is."""
        self.load_state_dict(parent.state_dict())

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n draws of x, (n, *input_shape)."""
        raise NotImplementedError(f"{type(self).__name__} cannot be sampled from")


class NoDensity(Density):
    """Where something else models x: the same for all x, nothing to learn."""

    def log_prob(self, x: Tensor, lateral: Features = ()) -> Tensor:
        return x.new_zeros(len(x))


class Predictor(Part):
    """p(y | x, k)."""

    @abstractmethod
    def predictive(self, x: Tensor, lateral: Features = ()) -> Tensor:
        """Class log-probabilities (batch, n_classes), or mean and variance (batch, 2, n_outputs)."""

    def answer(self, x: Tensor, own: Features | None, lateral: Features) -> Tensor:
        return self.predictive(x, lateral)

    @abstractmethod
    def log_prob(self, y: Tensor, predictive: Tensor) -> Tensor:
        """log p(y | x, k) as routing sees it, (batch,), given this part's own `predictive`."""

    @abstractmethod
    def loss(self, x: Tensor, y: Tensor, lateral: Features) -> Tensor:
        """What training minimises, (batch,)."""

    @abstractmethod
    def draw(self, predictive: Tensor, generator: torch.Generator) -> Tensor:
        """One y for every row of `predictive`."""

    def admit(self, n_classes: int) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Makes room for classes up to `n_classes`; returns (old, new) for every parameter that was enlarged."""
        return []

    @property
    def is_open(self) -> bool:
        """Whether :meth:`see` may change anything."""
        return True

    def see(self, y: Tensor) -> None:
        """Takes note of targets that are about to be learned."""


def gaussian_kernel_log_prob(x: Tensor, centres: Tensor, variance: Tensor | float) -> Tensor:
    """log N(x; centre, variance I) for every pair: (batch, n_centres)."""
    scale = torch.as_tensor(variance, dtype=x.dtype, device=x.device)
    distance = torch.cdist(x.flatten(1), centres.flatten(1)).square()
    n_features = x[0].numel()
    return -0.5 * (distance / scale + n_features * torch.log(2 * torch.pi * scale))


def nearest_neighbour_variance(centres: Tensor) -> Tensor:
    """Mean squared distance to the nearest other centre, per feature; 1 where there is no other, never zero."""
    if len(centres) < 2:
        return torch.ones((), device=centres.device)
    flat = centres.flatten(1)
    distance = torch.cdist(flat, flat).fill_diagonal_(torch.inf)
    return (distance.min(dim=1).values.square().mean() / flat.shape[1]).clamp_min(1e-3)
