"""Distributions of one pixel in an autoregressive density: zero or one, or one of 256 levels in each of its channels.

The network (:mod:`cndpm.experts.neural.autoregressive`) is the same for all; it gives every pixel some numbers, made of
the pixels before, which are the parameters of the distributions here. Shapes: `x` is (n, n_channels, ...) and `output`
(n, n_outputs, ...), where ... is (H, W), or nothing where one pixel is drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from cndpm.experts.neural.likelihoods import Bernoulli, logistic_kernel_log_prob, logistic_log_mass


class Pixel(nn.Module, ABC):
    """p(x_i | output): the distribution of one pixel, all of its channels together, given `n_outputs` numbers."""

    def __init__(self, n_channels: int, n_outputs: int) -> None:
        super().__init__()
        self.n_channels, self.n_outputs = n_channels, n_outputs

    @abstractmethod
    def log_prob(self, x: Tensor, output: Tensor) -> Tensor:
        """Returns log p(x_i | output) of every pixel, (n, ...); x is (n, n_channels, ...)."""

    @abstractmethod
    def sample(self, output: Tensor, generator: torch.Generator) -> Tensor:
        """Draws one pixel for each output (n, n_outputs), (n, n_channels)."""

    @abstractmethod
    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        """Returns the log of a kernel over images (..., n_channels, H, W) around each centre, (batch, n_centres)."""

    @abstractmethod
    def check(self, x: Tensor) -> None:
        """Raises ValueError, with the remedy, where x has values that no pixel can have."""


class BernoulliPixel(Pixel):
    """Black or white; the output is the logit of white."""

    def __init__(self) -> None:
        super().__init__(n_channels=1, n_outputs=1)

    def log_prob(self, x: Tensor, output: Tensor) -> Tensor:
        return (x * output - functional.softplus(output)).squeeze(1)

    def sample(self, output: Tensor, generator: torch.Generator) -> Tensor:
        return torch.bernoulli(torch.sigmoid(output), generator=generator)

    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        return Bernoulli().kernel_log_prob(x, centres)

    def check(self, x: Tensor) -> None:
        if x.numel() and not bool(((x == 0) | (x == 1)).all()):
            raise ValueError(
                "an autoregressive density is one of black and white unless told otherwise: x must be 0 or 1; got "
                f"{_range(x)}. Binarise x, e.g. torch.bernoulli(x), or choose likelihood='logistic' for 8-bit values."
            )


class LogisticPixel(Pixel):
    r"""Levels in every channel: a mixture of discretised logistics (Salimans et al. 2017).

    .. math::
        p(x_1, \dots, x_C) = \sum_k \pi_k \prod_c \Big[ \sigma\Big(\frac{x_c + b - \mu_{kc}}{s_{kc}}\Big) -
        \sigma\Big(\frac{x_c - b - \mu_{kc}}{s_{kc}}\Big) \Big], \qquad
        \mu_{kc} = m_{kc} + \sum_{c' < c} a_{kcc'} (x_{c'} - \tfrac12)

    with half a level b, and the outermost levels reaching to infinity. The component k is the pixel's, not the
    channel's. The output is log π (up to a constant), m, log s and a, from places spread over [0, 1] and scales around
    an eighth, so that a network whose outputs are zero covers all levels. Scales stay within e^-7 and e^7, smoothly.
    """

    places: Tensor

    def __init__(self, n_channels: int = 1, *, n_components: int = 10, n_levels: int = 256) -> None:
        if n_components < 1 or n_levels < 2:
            raise ValueError(
                f"a mixture needs a component and a pixel two levels, at least; got {n_components} and {n_levels}"
            )
        # How many numbers of each kind: log π, m, log s, a.
        sizes = [1, n_channels, n_channels, n_channels * (n_channels - 1) // 2]
        super().__init__(n_channels, n_components * sum(sizes))
        self._sizes = sizes
        self.n_components, self.n_levels = n_components, n_levels
        self.register_buffer("places", (torch.arange(n_components) + 0.5) / n_components, persistent=False)

    @property
    def half_level(self) -> float:
        """Half the distance of two levels."""
        return 0.5 / (self.n_levels - 1)

    def log_prob(self, x: Tensor, output: Tensor) -> Tensor:
        said = self._read(output)
        means = torch.stack([said.mean(c, x) for c in range(self.n_channels)], dim=2)
        log_mass = logistic_log_mass(x.unsqueeze(1), means, said.log_scales, half_bin=self.half_level)
        return torch.logsumexp(said.log_weights + log_mass.sum(dim=2), dim=1)

    def sample(self, output: Tensor, generator: torch.Generator) -> Tensor:
        said = self._read(output)
        chosen = torch.multinomial(said.log_weights.exp(), 1, generator=generator)
        x = output.new_zeros(len(output), self.n_channels)
        for c in range(self.n_channels):
            mean, log_scale = (of_all.gather(1, chosen)[:, 0] for of_all in (said.mean(c, x), said.log_scales[:, :, c]))
            u = torch.rand(len(x), generator=generator, device=x.device, dtype=x.dtype)
            # The inverse of the logistic's CDF; what lies beyond the outermost levels, infinity included, counts there.
            drawn = (mean + log_scale.exp() * torch.logit(u)).clamp(0, 1)
            x[:, c] = (drawn * (self.n_levels - 1)).round() / (self.n_levels - 1)
        return x

    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        return logistic_kernel_log_prob(x, centres, half_bin=self.half_level)

    def check(self, x: Tensor) -> None:
        top = self.n_levels - 1
        level = x * top
        # A thousandth of a level: what float32 leaves of a division.
        fits = ((level - level.round()).abs() < 1e-3) & (x > -self.half_level) & (x < 1 + self.half_level)
        if not bool(fits.all()):
            raise ValueError(
                f"likelihood='logistic' of an autoregressive density needs values 0, 1/{top}, ..., 1; got {_range(x)}, "
                f"e.g. {x[~fits][0]:.6g}. Divide 8-bit images by 255, without any scaling or noise, or choose "
                "density='vae'."
            )

    def _read(self, output: Tensor) -> _Said:
        parts = torch.split(output, [self.n_components * size for size in self._sizes], dim=1)
        log_weights, means, log_scales, slopes = (
            torch.unflatten(part, 1, (self.n_components, size)) for part, size in zip(parts, self._sizes, strict=True)
        )
        places = self.places.view(-1, *[1] * (means.dim() - 2))
        return _Said(
            log_weights.squeeze(2).log_softmax(dim=1), means + places, 7 * torch.tanh(log_scales / 7 - 0.3), slopes
        )


class _Said(NamedTuple):
    """A mixture for every pixel: weights (n, K, ...), means and scales (n, K, C, ...), slopes (n, K, C(C-1)/2, ...).

    The slopes are those of a channel and one before it, in the order (1, 0), (2, 0), (2, 1), ....
    """

    log_weights: Tensor
    means: Tensor
    log_scales: Tensor
    slopes: Tensor

    def mean(self, c: int, x: Tensor) -> Tensor:
        """Returns the means of channel c given the channels of x before it, (n, K, ...)."""
        first = c * (c - 1) // 2
        earlier = x[:, None, :c] - 0.5
        return self.means[:, :, c] + (self.slopes[:, :, first : first + c] * earlier).sum(dim=2)


def _range(x: Tensor) -> str:
    low, high = torch.stack(torch.aminmax(x)).tolist()
    return f"values in [{low:.4g}, {high:.4g}]"
