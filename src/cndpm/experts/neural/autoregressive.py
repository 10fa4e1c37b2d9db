"""An exact density of images: every pixel given those before it, by a network of causal convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from cndpm.experts.neural.lateral import Features
from cndpm.experts.neural.parts import Density
from cndpm.experts.neural.pixels import BernoulliPixel, Pixel


class CausalConvolution(nn.Module):
    """A convolution that looks at the rows above a pixel and to the left of it, never at later pixels.

    Of the (reach + 1) x (2 reach + 1) values above, beside and at a pixel, in reading order, those after it are not
    masked but absent: every number that is kept is used.
    """

    def __init__(self, inputs: int, outputs: int, *, reach: int, own: bool) -> None:
        super().__init__()
        self.reach = reach
        n_seen = reach * (2 * reach + 1) + reach + own
        self.taps = nn.Parameter(torch.empty(outputs, inputs, n_seen))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.normal_(self.taps, std=math.sqrt(2 / (inputs * n_seen)))

    def kernel(self) -> Tensor:
        """Returns the weights as a kernel, (outputs, inputs, reach + 1, 2 reach + 1)."""
        size = (self.reach + 1, 2 * self.reach + 1)
        unseen = math.prod(size) - self.taps.shape[2]
        return functional.pad(self.taps, (0, unseen)).view(*self.taps.shape[:2], *size)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n, inputs, H, W) to (n, outputs, H, W)."""
        # Padded above and below alike, output row i sees the input rows i - reach to i; the last ones are of no use.
        return functional.conv2d(x, self.kernel(), self.bias, padding=self.reach)[:, :, : x.shape[2]]

    def at(self, row: int, column: int, padded: Tensor) -> Tensor:
        """Returns the output at one pixel, (n, outputs, 1, 1)."""
        seen = padded[:, :, row : row + self.reach + 1, column : column + 2 * self.reach + 1]
        return functional.conv2d(seen, self.kernel(), self.bias)

    def canvas(self, n: int, height: int, width: int) -> Tensor:
        """Returns zeros in which :meth:`at` finds its inputs; pixel (i, j) lies at (reach + i, reach + j)."""
        return self.taps.new_zeros(n, self.taps.shape[1], self.reach + height, width + 2 * self.reach)


class _Block(nn.Module):
    """h + W tanh(a) σ(b), where (a, b) is a causal convolution of h: as in a gated PixelCNN, without its two stacks."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.look = CausalConvolution(channels, 2 * channels, reach=1, own=True)
        self.turn = nn.Conv2d(channels, channels, 1)

    def forward(self, h: Tensor, noise: Tensor | None) -> Tensor:
        return h + self.judge(self.look(functional.elu(h)), noise)

    def judge(self, seen: Tensor, noise: Tensor | None = None) -> Tensor:
        """Returns the block's addition to h, (n, channels, H, W), from its convolution (n, 2 channels, H, W)."""
        value, gate = seen.chunk(2, dim=1)
        gated = torch.tanh(value) * torch.sigmoid(gate)
        result: Tensor = self.turn(gated if noise is None else gated * noise)
        return result


class AutoregressiveDensity(Density):
    r"""p(x) of images, exact.

    .. math:: \log p(x) = \sum_i \log p(x_i \mid x_1, \dots, x_{i-1})

    Pixels are in reading order. A causal convolution of 7 x 7 and residual blocks of 3 x 3 (van den Oord et al. 2016)
    look above and to the left. Digits have a place on the page, so every row and every column adds numbers of its own
    to the channels. `pixel` defines the values of a pixel and their distribution given the network's output.
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        pixel: Pixel | None = None,
        channels: int = 32,
        n_blocks: int = 7,
        dropout: float = 0.1,
        lateral_widths: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        pixel = BernoulliPixel() if pixel is None else pixel
        if len(input_shape) != 3 or input_shape[0] != pixel.n_channels:
            raise ValueError(
                f"an autoregressive density with a {type(pixel).__name__} needs images ({pixel.n_channels}, height, "
                f"width); got {input_shape}"
            )
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout is a part of the channels, at least 0 and below 1; got {dropout}")
        self.input_shape, self.dropout, self.pixel = input_shape, dropout, pixel
        self.first = CausalConvolution(pixel.n_channels, channels, reach=3, own=False)
        self.rows = nn.Parameter(torch.zeros(channels, input_shape[1], 1))
        self.columns = nn.Parameter(torch.zeros(channels, 1, input_shape[2]))
        self.blocks = nn.ModuleList(_Block(channels) for _ in range(n_blocks))
        self.last = nn.Conv2d(channels, pixel.n_outputs, 1)

    def check(self, x: Tensor) -> None:
        self.pixel.check(x)

    def log_prob(self, x: Tensor, lateral: Features = ()) -> Tensor:
        return self._log_prob(x, None)

    def loss(self, x: Tensor, lateral: Features, generator: torch.Generator) -> Tensor:
        if not self.dropout:
            return -self._log_prob(x, None)
        channels = len(self.rows)
        kept = torch.rand(len(self.blocks), len(x), channels, 1, 1, generator=generator, device=x.device)
        return -self._log_prob(x, (kept >= self.dropout).to(x.dtype) / (1 - self.dropout))

    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        return self.pixel.kernel_log_prob(x, centres)

    def outputs(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        """Returns the network's output for every pixel given those before it, (n, pixel.n_outputs, H, W).

        The noise, (n_blocks, n, channels, 1, 1), multiplies the channels of each block.
        """
        h = self.first(x) + self.rows + self.columns
        for i, block in enumerate(self.blocks):
            h = block(h, None if noise is None else noise[i])
        outputs: Tensor = self.last(functional.elu(h))
        return outputs

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        # The inputs of all layers are kept, so that a pixel costs one pixel, not one image.
        _, height, width = self.input_shape
        x = self.first.canvas(n, height, width)
        seen = [block.look.canvas(n, height, width) for block in self._blocks()]
        reach = self.first.reach
        for row in range(height):
            for column in range(width):
                output = self._output_at(row, column, x, seen)
                x[:, :, reach + row, reach + column] = self.pixel.sample(output, generator)
        return x[:, :, reach:, reach : reach + width].clone()

    def _output_at(self, row: int, column: int, x: Tensor, seen: list[Tensor]) -> Tensor:
        """Returns the output for one pixel, (n, n_outputs); writes the blocks' inputs at this pixel to `seen`."""
        h = self.first.at(row, column, x) + (self.rows[:, row] + self.columns[:, :, column])[..., None]
        for block, canvas in zip(self._blocks(), seen, strict=True):
            reach = block.look.reach
            canvas[:, :, reach + row, reach + column] = functional.elu(h)[:, :, 0, 0]
            h = h + block.judge(block.look.at(row, column, canvas))
        output: Tensor = self.last(functional.elu(h))
        return output[:, :, 0, 0]

    def _blocks(self) -> Iterator[_Block]:
        for block in self.blocks:
            assert isinstance(block, _Block)
            yield block

    def _log_prob(self, x: Tensor, noise: Tensor | None) -> Tensor:
        return self.pixel.log_prob(x, self.outputs(x, noise)).flatten(1).sum(dim=1)
