"""The networks that all single-network learners share, with the paper's parameter counts.

| network | for | parameters |
|---|---|---|
| MLP 400-400 | Split-MNIST, any vector | 478K at 784 inputs and 10 classes |
| ResNet-18 | 32 x 32 images | 11.2M |
| VAE 400-400, latent 32 | generation | 988K at 784 inputs |

Weights are drawn from a generator that the caller seeds: building a network neither reads nor moves torch's global
random state, and gives the same weights on every device.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Literal, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ClassPriors(nn.Module):
    """One Gaussian over the latent space per class, learned with the rest: p(z | y) = N(mean_y, diag variance_y)."""

    def __init__(self, n_classes: int, latent: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.empty(n_classes, latent))
        self.log_variance = nn.Parameter(torch.empty(n_classes, latent))

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Returns mean and log variance for these labels, each (batch, latent)."""
        return self.mean[y], self.log_variance[y]


class PixelVAE(nn.Module):
    """A variational autoencoder with Bernoulli pixels (Kingma and Welling 2014).

    log p(x) >= E_q(z|x)[log p(x | z)] - KL(q(z | x) || p(z)), with q a diagonal Gaussian and p(z) standard normal, or
    p(z | y) one Gaussian per class (`class_priors`). With `n_classes` a linear layer on the encoder's hidden features
    also classifies (replay through feedback).
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        hidden: int = 400,
        latent: int = 32,
        n_classes: int | None = None,
        class_priors: bool = False,
    ) -> None:
        super().__init__()
        if class_priors and n_classes is None:
            raise ValueError("class_priors wants to know how many classes there are; got n_classes=None")
        self.input_shape = input_shape
        self.latent = latent
        n_inputs = math.prod(input_shape)
        self.encoder = nn.Sequential(nn.Flatten(), mlp([n_inputs, hidden, hidden]), nn.ReLU())
        self.posterior = nn.Linear(hidden, 2 * latent)
        self.decoder = mlp([latent, hidden, hidden, n_inputs])
        self.head = None if n_classes is None else nn.Linear(hidden, n_classes)
        self.priors = ClassPriors(n_classes, latent) if class_priors and n_classes is not None else None

    def elbo(self, x: Tensor, noise: Tensor, y: Tensor | None = None) -> Tensor:
        """Returns the evidence lower bound, (batch,), averaged over `noise`, (n_samples, batch or 1, latent)."""
        return self._elbo_given(self.encoder(x), x, noise, y)

    def classify(self, x: Tensor) -> Tensor:
        """Returns logits of the classes, (batch, n_classes), for a VAE that was made with classes."""
        return self._logits_given(self.encoder(x))

    def classify_and_bound(self, x: Tensor, noise: Tensor, y: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Returns logits (batch, n_classes) and bounds (batch,) after one pass of the encoder."""
        features = self.encoder(x)
        return self._logits_given(features), self._elbo_given(features, x, noise, y)

    def sample(self, n: int, generator: torch.Generator, y: Tensor | None = None) -> Tensor:
        """Decodes n draws from the prior (that of labels y (n,)) into pixel probabilities, (n, *input_shape)."""
        mean, log_variance = self._prior_given(y)
        z = torch.randn(n, self.latent, generator=generator).to(mean.device)
        logits = self.decoder(mean + torch.exp(0.5 * log_variance) * z)
        return torch.sigmoid(logits).reshape(n, *self.input_shape)

    def _logits_given(self, features: Tensor) -> Tensor:
        if self.head is None:
            raise ValueError("this VAE was made without classes; pass n_classes to classify with it")
        logits: Tensor = self.head(features)
        return logits

    def _prior_given(self, y: Tensor | None) -> tuple[Tensor, Tensor]:
        """Returns mean and log variance of p(z) or p(z | y), each (1 or batch, latent)."""
        if (self.priors is None) != (y is None):
            raise ValueError("labels go with class_priors: give both or neither")
        if self.priors is None:
            zeros = self.posterior.weight.new_zeros(1, self.latent)
            return zeros, zeros
        mean, log_variance = self.priors(y)
        return mean, log_variance

    def _elbo_given(self, features: Tensor, x: Tensor, noise: Tensor, y: Tensor | None) -> Tensor:
        mean, log_variance = self.posterior(features).chunk(2, dim=-1)
        z = mean + torch.exp(0.5 * log_variance) * noise
        logits = self.decoder(z)
        target = x.flatten(1).expand_as(logits)
        log_likelihood: Tensor = -F.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(-1).mean(0)
        prior_mean, prior_log_variance = self._prior_given(y)
        log_ratio = log_variance - prior_log_variance
        shift = (mean - prior_mean).square() * torch.exp(-prior_log_variance)
        kl: Tensor = 0.5 * (shift + log_ratio.exp() - 1 - log_ratio).sum(-1)
        return log_likelihood - kl


def mlp(widths: list[int]) -> nn.Sequential:
    """Returns linear layers of the given widths with ReLU between them, none after the last."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut (He et al. 2016, Figure 2)."""

    def __init__(self, n_in: int, n_out: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(n_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.shortcut = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, n_in, h, w) to (batch, n_out, h / stride, w / stride)."""
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


class ResNet18Features(nn.Sequential):
    """ResNet-18 for small images: a 3 x 3 stem, four stages of two blocks, global average; (batch, 512)."""

    def __init__(self, n_channels: int) -> None:
        stem: list[nn.Module] = [nn.Conv2d(n_channels, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        widths = [64, 64, 128, 256, 512]
        for stage, (n_in, n_out) in enumerate(pairwise(widths)):
            stem += [ResidualBlock(n_in, n_out, stride=1 if stage == 0 else 2), ResidualBlock(n_out, n_out, stride=1)]
        super().__init__(*stem, nn.AdaptiveAvgPool2d(1), nn.Flatten())


NetworkName = Literal["auto", "mlp", "resnet18"]
"""Names of networks; "auto" takes the one that suits the shape of the inputs."""

M = TypeVar("M", bound=nn.Module)


class LogitNetwork(nn.Module):
    """Features (batch, n_features) and a linear layer; calling it gives the logits, (batch, n_classes)."""

    def __init__(self, features: nn.Module, *, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.features = features
        self.head = nn.Linear(n_features, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Returns logits, (batch, n_classes)."""
        logits: Tensor = self.head(self.features(x))
        return logits


def build_classifier(
    name: NetworkName, input_shape: tuple[int, ...], n_classes: int, generator: torch.Generator, *, hidden: int = 400
) -> LogitNetwork:
    """Builds the base classifier: by default ResNet-18 for 3 x 32 x 32 images, the 400-400 MLP for everything else.

    ValueError: ResNet-18 was asked for inputs that are no images (channels, height, width).
    """
    if name == "auto":
        name = "resnet18" if input_shape == (3, 32, 32) else "mlp"
    if name == "resnet18" and len(input_shape) != 3:
        raise ValueError(f"resnet18 takes images (channels, height, width); got {input_shape}. Choose network='mlp'.")
    with torch.device("meta"):
        if name == "resnet18":
            network = LogitNetwork(ResNet18Features(input_shape[0]), n_features=512, n_classes=n_classes)
        else:
            features = nn.Sequential(nn.Flatten(), mlp([math.prod(input_shape), hidden, hidden]), nn.ReLU())
            network = LogitNetwork(features, n_features=hidden, n_classes=n_classes)
    return initialise(network, generator)


def build_vae(input_shape: tuple[int, ...], generator: torch.Generator, **options: Any) -> PixelVAE:
    """Builds the VAE of the generation experiments, with options of :class:`PixelVAE`, initialised by the generator."""
    with torch.device("meta"):
        network = PixelVAE(input_shape, **options)
    return initialise(network, generator)


def initialise(network: M, generator: torch.Generator) -> M:
    """Fills a network built on the meta device with PyTorch's usual initial distribution, drawn from `generator`.

    Weights and biases of linear and convolutional layers are uniform within 1 / sqrt(fan-in); normalisation layers
    start as the identity, priors of classes at standard normal places with variance one.
    """
    network.to_empty(device="cpu")
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            bound = 1 / math.sqrt(module.weight[0].numel())
            nn.init.uniform_(module.weight, -bound, bound, generator=generator)
            if module.bias is not None:
                nn.init.uniform_(module.bias, -bound, bound, generator=generator)
        elif isinstance(module, nn.BatchNorm2d):
            module.reset_parameters()
        elif isinstance(module, ClassPriors):
            nn.init.normal_(module.mean, generator=generator)
            nn.init.zeros_(module.log_variance)
    return network
