"""Columns with lateral connections: a later expert reuses what earlier ones compute, and cannot change it.

Each expert is a *column* of layers. A layer of column k sees the previous layer of all columns up to k; the features of
earlier columns arrive detached, so no gradient reaches them (progressive networks, Rusu et al. 2016; section 3.2 of
the paper). The features of several columns are joined layer by layer, earliest first: together the columns form one
network with block-triangular weights.

The layouts of columns for images, and of the decoder that mirrors an encoder (appendix C of the paper), follow from its
text and from its parameter counts: 4.60M for five experts on Split-CIFAR10, 19.2M for twenty on Split-CIFAR100 and
7.80M for two on MNIST-SVHN. They leave no bias in the residual networks and no parameters in the normalisation, let the
head and the code see the features of all columns, and count the code as the second of the encoder's two fully connected
layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

Features = tuple[Tensor, ...]
"""One tensor (batch, width, ...) for every layer that later columns may look at; empty where nothing is shared."""


class Column(nn.Module, ABC):
    """One expert's layers, of `widths` units or channels, of which later columns see the features."""

    widths: tuple[int, ...]
    out_features: int

    @abstractmethod
    def forward(self, x: Tensor, lateral: Features) -> Features:
        """Returns this column's own features, layer by layer; `lateral` are those of all earlier columns."""

    @abstractmethod
    def top(self, own: Features, lateral: Features) -> Tensor:
        """Returns the last layer of all columns up to this one, the input of its head, (batch, out_features)."""

    @staticmethod
    def beside(lateral: Features, depth: int, own: Tensor) -> Tensor:
        """Joins a layer's own features to those of the earlier columns, (batch, width, ...)."""
        return torch.cat([lateral[depth], own], dim=1) if lateral else own


class LateralMLP(Column):
    r"""One column of fully connected layers.

    .. math:: h_l = \mathrm{ReLU}(W_l [\bar h_{l-1}, h_{l-1}] + b_l)

    where :math:`\bar h` are the features of all earlier columns, of `lateral_widths` units, and :math:`h_0 = x` is not
    repeated.
    """

    def __init__(self, in_features: int, widths: Sequence[int], lateral_widths: Sequence[int] = ()) -> None:
        super().__init__()
        earlier = tuple(lateral_widths) or (0,) * len(widths)
        if len(earlier) != len(widths):
            raise ValueError(f"one lateral width per layer is needed; got {len(earlier)} for {len(widths)} layers")
        self.widths = tuple(widths)
        self.out_features = earlier[-1] + widths[-1]
        inputs = [in_features, *(before + own for before, own in zip(earlier, widths, strict=True))][:-1]
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in zip(inputs, widths, strict=True))

    def forward(self, x: Tensor, lateral: Features) -> Features:
        features: list[Tensor] = []
        inputs = x.flatten(1)
        for depth, layer in enumerate(self.layers):
            features.append(torch.relu_(layer(inputs)))
            inputs = self.beside(lateral, depth, features[-1])
        return tuple(features)

    @staticmethod
    def top(own: Features, lateral: Features) -> Tensor:
        return Column.beside(lateral, -1, own[-1])


class LateralCNN(Column):
    """Encoder: two 3 x 3 convolutions, each with 2 x 2 max-pooling and ReLU, and one fully connected layer.

    Channels and units double from layer to layer: c, 2c, 4c. Height and width must be divisible by 4. `lateral_widths`
    are channels and units of all earlier columns together, layer by layer; empty for the first.
    """

    def __init__(self, input_shape: tuple[int, ...], channels: int, lateral_widths: Sequence[int] = ()) -> None:
        super().__init__()
        n_pixels = _quarter(input_shape)[0] * _quarter(input_shape)[1]
        self.widths = (channels, 2 * channels, 4 * channels)
        earlier = tuple(lateral_widths) or (0, 0, 0)
        self.out_features = earlier[2] + self.widths[2]
        self.first = nn.Conv2d(input_shape[0], self.widths[0], 3, padding=1)
        self.second = nn.Conv2d(earlier[0] + self.widths[0], self.widths[1], 3, padding=1)
        self.third = nn.Linear((earlier[1] + self.widths[1]) * n_pixels, self.widths[2])

    def forward(self, x: Tensor, lateral: Features) -> Features:
        first = torch.relu_(functional.max_pool2d(self.first(x), 2))
        second = torch.relu_(functional.max_pool2d(self.second(self.beside(lateral, 0, first)), 2))
        third = torch.relu_(self.third(self.beside(lateral, 1, second).flatten(1)))
        return first, second, third

    def top(self, own: Features, lateral: Features) -> Tensor:
        return self.beside(lateral, 2, own[2])


class LateralResNet(Column):
    """Residual network (He et al. 2016) with instance normalisation: a convolution, then four stages of basic blocks.

    Height and width are halved, and channels doubled, from each stage to the next. The first block of a stage sees the
    output of the previous stage of all columns, whose channels together are `lateral_widths`. One block per stage is
    the paper's four-block network, two are the shape of ResNet-18.
    """

    def __init__(
        self, input_shape: tuple[int, ...], channels: int, *, n_blocks: int = 1, lateral_widths: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.widths = (channels, *(channels * 2**stage for stage in range(4)))
        earlier = tuple(lateral_widths) or (0,) * 5
        self.out_features = earlier[4] + self.widths[4]
        self.stem = nn.Conv2d(input_shape[0], channels, 3, padding=1, bias=False)
        self.stages = nn.ModuleList(
            nn.Sequential(
                InstanceNormBlock(
                    earlier[stage] + self.widths[stage], self.widths[stage + 1], stride=2 if stage else 1
                ),
                *(InstanceNormBlock(self.widths[stage + 1], self.widths[stage + 1]) for _ in range(n_blocks - 1)),
            )
            for stage in range(4)
        )

    def forward(self, x: Tensor, lateral: Features) -> Features:
        features = [torch.relu_(functional.instance_norm(self.stem(x)))]
        for stage, blocks in enumerate(self.stages):
            features.append(blocks(self.beside(lateral, stage, features[-1])))
        return tuple(features)

    def top(self, own: Features, lateral: Features) -> Tensor:
        return self.beside(lateral, 4, own[4]).mean(dim=(2, 3))


class InstanceNormBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut, which is a 1 x 1 convolution where shapes differ."""

    def __init__(self, inputs: int, outputs: int, *, stride: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.shortcut = None
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu_(functional.instance_norm(self.first(x)))
        hidden = functional.instance_norm(self.second(hidden))
        beside = x if self.shortcut is None else functional.instance_norm(self.shortcut(x))
        return torch.relu_(hidden + beside)


def mirrored_decoder(input_shape: tuple[int, ...], channels: int, latent_dim: int) -> nn.Sequential:
    """Makes the mirror image of :class:`LateralCNN`, with 4 x 4 transposed convolutions of stride 2.

    The decoder maps codes (n, latent_dim) to outputs (n, d).
    """
    size = _quarter(input_shape)
    return nn.Sequential(
        nn.Linear(latent_dim, 4 * channels),
        nn.ReLU(inplace=True),
        nn.Linear(4 * channels, 2 * channels * size[0] * size[1]),
        nn.ReLU(inplace=True),
        nn.Unflatten(1, (2 * channels, *size)),
        nn.ConvTranspose2d(2 * channels, channels, 4, stride=2, padding=1),
        nn.ReLU(inplace=True),
        nn.ConvTranspose2d(channels, input_shape[0], 4, stride=2, padding=1),
        nn.Flatten(),
    )


def _quarter(input_shape: tuple[int, ...]) -> tuple[int, int]:
    if len(input_shape) != 3 or input_shape[1] % 4 or input_shape[2] % 4:
        raise ValueError(
            "a convolutional density needs samples of shape (channels, height, width) with height and width divisible "
            f"by 4; got {input_shape}. Resize or pad the images, or choose architecture='mlp'."
        )
    return input_shape[1] // 4, input_shape[2] // 4
