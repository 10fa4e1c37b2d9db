"""Observation likelihoods log p(x | decoder output) of a variational autoencoder.

Each takes the decoder's raw output, one number per feature, and sums over the features. Shapes: `x` is (..., d) and
`output` broadcasts against it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from cndpm.experts.kernels import gaussian_kernel_log_prob, nearest_neighbour_variance
from cndpm.experts.neural import LikelihoodName
from cndpm.experts.neural.fused import linear_bernoulli_log_prob, linear_sigmoid_squared_error, sigmoid_squared_error


class Likelihood(nn.Module, ABC):
    """p(x | output)."""

    unit_interval: bool = False
    """Whether x must lie in [0, 1]."""

    @abstractmethod
    def log_prob(self, x: Tensor, output: Tensor) -> Tensor:
        """Returns log p(x | output), summed over the last dimension; the output is broadcast against x (..., d)."""

    def linear_log_prob(self, x: Tensor, hidden: Tensor, layer: nn.Linear) -> Tensor:
        """Returns log p(x | W h + b), the decoder's last layer included, (S, B), of x (B, d) and h (S, B, n_hidden)."""
        return self.log_prob(x, layer(hidden))

    @abstractmethod
    def mean(self, output: Tensor) -> Tensor:
        """Returns E[x | output], in the shape of the output."""

    @abstractmethod
    def sample(self, output: Tensor, generator: torch.Generator) -> Tensor:
        """Draws x in the shape of the decoder's output, (..., d)."""

    @abstractmethod
    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        """Returns the log of a kernel around each centre, comparable with :meth:`log_prob`, (batch, n_centres)."""

    def check(self, x: Tensor) -> None:
        """Raises ValueError where x is outside the domain."""
        if not self.unit_interval or not x.numel():
            return
        low, high = torch.stack(torch.aminmax(x)).tolist()
        if low < 0 or high > 1:
            raise ValueError(
                f"this likelihood needs values in [0, 1]; got [{low:.4g}, {high:.4g}]. Divide 8-bit images by "
                "255, use a MinMaxScaler, or choose likelihood='gaussian', which takes any value."
            )


class Bernoulli(Likelihood):
    """Independent binary features; the output is the logit. Intensities in [0, 1] count as probabilities."""

    unit_interval = True

    def log_prob(self, x: Tensor, output: Tensor) -> Tensor:
        # log p = x·a - softplus(a), so that x need not be expanded to the shape of the output.
        return (x * output - functional.softplus(output)).sum(dim=-1)

    def linear_log_prob(self, x: Tensor, hidden: Tensor, layer: nn.Linear) -> Tensor:
        return linear_bernoulli_log_prob(hidden, layer.weight, layer.bias, x)

    def mean(self, output: Tensor) -> Tensor:
        return torch.sigmoid(output)

    def sample(self, output: Tensor, generator: torch.Generator) -> Tensor:
        return torch.bernoulli(self.mean(output), generator=generator)

    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        probability = (0.9 * centres.flatten(1) + 0.05).T
        flat = x.flatten(1)
        return flat @ probability.log() + (1 - flat) @ (1 - probability).log()


class Gaussian(Likelihood):
    """Gaussian with a fixed variance, or one that is learned for all features ("scalar") or for each ("feature").

    Where the mean passes a sigmoid (`squash`) x must lie in [0, 1]. A log-variance learns `rate` times as fast as the
    weights: with Adam a parameter moves by the learning rate in a step, and it has a long way to go, from 0 to about -4
    for images in [0, 1]. A learned variance does not fall below `floor`: where it binds, experts have the same
    variance, and their densities differ by what they explain, not by how sure they are.
    """

    raw: Tensor

    def __init__(
        self,
        n_features: int,
        *,
        variance: float | Literal["scalar", "feature"] = 1.0,
        squash: bool = True,
        rate: float = 1.0,
        floor: float = 1e-4,
    ) -> None:
        super().__init__()
        self.squash = self.unit_interval = squash
        self.learned = isinstance(variance, str)
        self._fixed = None if isinstance(variance, str) else variance
        self.rate, self.floor = (rate, floor) if self.learned else (1.0, 0.0)
        start = torch.zeros(n_features if variance == "feature" else ())
        if isinstance(variance, str):
            self.raw = nn.Parameter(start)
        else:
            self.register_buffer("raw", start + math.log(variance), persistent=False)

    @property
    def log_variance(self) -> Tensor:
        """Fixed or learned log-variance, () or (d,)."""
        return self.rate * self.raw

    @property
    def variance(self) -> Tensor:
        """Variance, not below the floor: (), or (d,) where every feature has its own."""
        return self.log_variance.exp().clamp_min(self.floor)

    def linear_log_prob(self, x: Tensor, hidden: Tensor, layer: nn.Linear) -> Tensor:
        if not (self.squash and self.raw.dim() == 0):
            return super().linear_log_prob(x, hidden, layer)
        return self._of_error(linear_sigmoid_squared_error(hidden, layer.weight, layer.bias, x), x.shape[-1])

    def _of_error(self, squared_error: Tensor, n_features: int) -> Tensor:
        if self._fixed is not None:
            return squared_error * (-0.5 / self._fixed) - 0.5 * n_features * math.log(2 * math.pi * self._fixed)
        variance = self.variance
        return -0.5 * (squared_error / variance + n_features * torch.log(2 * torch.pi * variance))

    def log_prob(self, x: Tensor, output: Tensor) -> Tensor:
        if self.squash and self.raw.dim() == 0:
            return self._of_error(sigmoid_squared_error(output, x), output.shape[-1])
        error = (x - self.mean(output)).square() / self.variance
        return -0.5 * (error + torch.log(2 * torch.pi * self.variance)).sum(dim=-1)

    def mean(self, output: Tensor) -> Tensor:
        return torch.sigmoid(output) if self.squash else output

    def sample(self, output: Tensor, generator: torch.Generator) -> Tensor:
        if not self.learned:
            # A variance that was not fitted says how errors are weighed, not how the data scatters.
            return self.mean(output)
        noise = torch.randn(output.shape, generator=generator, device=output.device)
        drawn = self.mean(output) + self.variance.sqrt() * noise
        return drawn.clamp(0, 1) if self.squash else drawn

    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        variance = nearest_neighbour_variance(centres) if self.learned else self.variance
        return gaussian_kernel_log_prob(x, centres, variance)


class DiscretisedLogistic(Likelihood):
    r"""Probability mass of 8-bit values under a logistic distribution with one learned scale per feature.

    .. math:: p(x) = \sigma((x + \tfrac{1}{510} - \mu) / s) - \sigma((x - \tfrac{1}{510} - \mu) / s)

    with the outermost bins reaching to infinity (Salimans et al. 2017). x is an 8-bit value divided by 255.
    """

    unit_interval = True

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.full((n_features,), -2.0))

    def log_prob(self, x: Tensor, output: Tensor) -> Tensor:
        return logistic_log_mass(x, self.mean(output), self.log_scale.clamp_min(-7.0)).sum(dim=-1)

    def mean(self, output: Tensor) -> Tensor:
        return torch.sigmoid(output)

    def sample(self, output: Tensor, generator: torch.Generator) -> Tensor:
        u = torch.rand(output.shape, generator=generator, device=output.device).clamp(1e-6, 1 - 1e-6)
        drawn = self.mean(output) + self.log_scale.exp() * (u.log() - (1 - u).log())
        return (drawn.clamp(0, 1) * 255).round() / 255

    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        return logistic_kernel_log_prob(x, centres)


def logistic_log_mass(x: Tensor, mean: Tensor, log_scale: Tensor, *, half_bin: float = 1 / 510) -> Tensor:
    """Returns the log of a logistic's mass within half a bin of x, elementwise; bins at 0 and 1 reach to infinity.

    The value is finite, and exact to rounding, however far x is from the mean.
    """
    inverse_scale = torch.exp(-log_scale)
    upper = (x + half_bin - mean) * inverse_scale
    lower = (x - half_bin - mean) * inverse_scale
    # log(σ(u) - σ(l)) = log σ(u) + log σ(-l) + log(1 - exp(l - u)), where u - l is known without taking a difference.
    log_below, log_above = functional.logsigmoid(upper), functional.logsigmoid(-lower)
    log_mass = log_below + log_above + torch.log(-torch.expm1(-2 * half_bin * inverse_scale))
    log_mass = torch.where(x < half_bin, log_below, log_mass)
    return torch.where(x > 1 - half_bin, log_above, log_mass)


def logistic_kernel_log_prob(x: Tensor, centres: Tensor, *, half_bin: float = 1 / 510) -> Tensor:
    """Returns the log of a discretised logistic around every centre, as wide as they lie apart, (batch, n_centres)."""
    # A logistic of scale s has variance s²π²/3.
    log_scale = 0.5 * torch.log(nearest_neighbour_variance(centres) * 3 / math.pi**2)
    flat = centres.flatten(1)
    return torch.stack([logistic_log_mass(row, flat, log_scale, half_bin=half_bin).sum(dim=-1) for row in x.flatten(1)])


def make_likelihood(
    name: LikelihoodName, n_features: int, *, variance_rate: float = 1.0, min_variance: float = 1e-4
) -> Likelihood:
    """Makes a likelihood by its name in the settings.

    "bernoulli"; "unit-gaussian" (variance 1, the paper's); "pixel-gaussian" (one learned variance, mean in [0, 1]);
    "gaussian" (a learned variance per feature, any real value); "logistic" (8-bit values).
    """
    match name:
        case "bernoulli":
            return Bernoulli()
        case "unit-gaussian":
            return Gaussian(n_features, variance=1.0)
        case "pixel-gaussian":
            return Gaussian(n_features, variance="scalar", rate=variance_rate, floor=min_variance)
        case "gaussian":
            return Gaussian(n_features, variance="feature", squash=False, rate=variance_rate, floor=min_variance)
        case "logistic":
            return DiscretisedLogistic(n_features)
