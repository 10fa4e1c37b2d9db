"""The parts of an expert: a density of x and a predictor of y; both contracts are open to classes of the user's own.

A minimal density of one's own:

    class Histogram(Density):
        def __init__(self, input_shape, *, lateral_widths=()): ...
        def log_prob(self, x, lateral=()): ...        # (batch,)

A part that shares nothing ignores `lateral`. One that does exposes `features`, and later experts receive them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import torch
from torch import Tensor, nn

from cndpm.experts.kernels import gaussian_kernel_log_prob, nearest_neighbour_variance
from cndpm.experts.neural.lateral import Features

__all__ = ["Density", "Predictor"]


class Part(nn.Module, ABC):
    """A network of one expert, possibly one column of a network shared by all."""

    @property
    def feature_widths(self) -> tuple[int, ...]:
        """Width of each layer that later experts may look at; empty when nothing is shared."""
        return ()

    def features(self, x: Tensor, lateral: Features) -> Features:
        """Returns this column's features for later experts, one tensor per layer, given those of earlier columns."""
        return ()

    def answer(self, x: Tensor, own: Features | None, lateral: Features) -> Tensor:
        """Returns the answer that all experts give together: `log_prob` of a density, `predictive` of a predictor.

        `own` are this column's features of x where they are known.
        """
        raise NotImplementedError(f"{type(self).__name__} is neither a density nor a predictor")

    def wake(self) -> None:
        """Prepares for answers; called once when the expert has slept."""

    def stepped(self) -> None:
        """Follows a step of the optimiser after sleep; called after every one, and must not wait for the device."""

    def strip(self) -> None:
        """Drops parameters that :meth:`features` does not need; called when an expert that others need is pruned."""


class Density(Part):
    """p(x | k).

    Example:
        A density of one's own:

        >>> class StandardNormal(Density):
        ...     def log_prob(self, x, lateral=()):
        ...         return torch.distributions.Normal(0.0, 1.0).log_prob(x.flatten(1)).sum(dim=1)
        >>> StandardNormal().log_prob(torch.zeros(2, 3))
        tensor([-2.7568, -2.7568])
    """

    @abstractmethod
    def log_prob(self, x: Tensor, lateral: Features = ()) -> Tensor:
        """Returns log p(x | k), (batch,); deterministic.

        Args:
            x: (batch, ...).
            lateral: The earlier columns' features, layer by layer.
        """

    def answer(self, x: Tensor, own: Features | None, lateral: Features) -> Tensor:
        return self.log_prob(x, lateral)

    def loss(self, x: Tensor, lateral: Features, generator: torch.Generator) -> Tensor:
        """Returns the training loss, (batch,).

        Args:
            x: (batch, ...).
            lateral: The earlier columns' features, layer by layer.
            generator: Source of noise, where the loss needs any.
        """
        return -self.log_prob(x, lateral)

    def check(self, x: Tensor) -> None:
        """Raises ValueError, with the remedy, where x is outside the density's domain."""

    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        """Returns the log of a kernel around each centre, comparable in scale with `log_prob`, (batch, n_centres).

        The provisional model of the memory is the mean of these kernels. By default Gaussian, as wide as the centres'
        mean distance to their nearest neighbours.

        Args:
            x: (batch, ...).
            centres: (n_centres, ...).
        """
        return gaussian_kernel_log_prob(x, centres, nearest_neighbour_variance(centres))

    def inherit(self, parent: Density) -> None:
        """Copies the parameters of a density of the same kind and shape."""
        self.load_state_dict(parent.state_dict())

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Draws n samples x, (n, *input_shape).

        Args:
            n: Number of samples.
            generator: Source of random numbers.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be sampled from")


class NoDensity(Density):
    """A constant, for experts whose x is modelled by another bank."""

    def log_prob(self, x: Tensor, lateral: Features = ()) -> Tensor:
        return x.new_zeros(len(x))


class Predictor(Part):
    """p(y | x, k).

    Example:
        >>> from cndpm.experts.neural.lateral_predictors import Classifier
        >>> predictor: Predictor = Classifier((3,), n_classes=2, hidden=(4,))
        >>> predictor.predictive(torch.rand(1, 3)).exp().detach()  # no class was seen yet
        tensor([[0.5000, 0.5000]])
    """

    @abstractmethod
    def predictive(self, x: Tensor, lateral: Features = ()) -> Tensor:
        """Returns class log-probabilities (batch, n_classes), or mean and variance (batch, 2, n_outputs).

        Args:
            x: (batch, ...).
            lateral: The earlier columns' features, layer by layer.
        """

    def answer(self, x: Tensor, own: Features | None, lateral: Features) -> Tensor:
        return self.predictive(x, lateral)

    @abstractmethod
    def log_prob(self, y: Tensor, predictive: Tensor) -> Tensor:
        """Returns log p(y | x, k) as routing sees it, (batch,).

        Args:
            y: Class indices (batch,) or targets (batch, n_outputs).
            predictive: This part's result of :meth:`predictive`.
        """

    @abstractmethod
    def loss(self, x: Tensor, y: Tensor, lateral: Features) -> Tensor:
        """Returns the training loss, (batch,).

        Args:
            x: (batch, ...).
            y: Class indices (batch,) or targets (batch, n_outputs).
            lateral: The earlier columns' features, layer by layer.
        """

    @abstractmethod
    def draw(self, predictive: Tensor, generator: torch.Generator) -> Tensor:
        """Draws one y for every row, (batch,) or (batch, n_outputs).

        Args:
            predictive: This part's result of :meth:`predictive`.
            generator: Source of random numbers.
        """

    def admit(self, n_classes: int) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Makes room for classes up to `n_classes`; returns (old, new) for every parameter that was enlarged."""
        return []

    @property
    def is_open(self) -> bool:
        """Whether :meth:`see` may change anything."""
        return True

    def see(self, y: Tensor) -> None:
        """Notes targets (batch, ...) that are about to be learned."""


class DensityMaker(Protocol):
    """Makes the density of one expert."""

    def __call__(self, *, first: bool, lateral_widths: tuple[int, ...]) -> Density:
        """Makes a density."""


class PredictorMaker(Protocol):
    """Makes the predictor of one expert."""

    def __call__(self, *, first: bool, lateral_widths: tuple[int, ...], n_classes: int) -> Predictor:
        """Makes a predictor."""
