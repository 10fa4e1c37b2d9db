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
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from cndpm.baselines.shared.layers import ResNet18Features, mlp
from cndpm.baselines.shared.pixel_vae import ClassPriors, PixelVAE

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

    Raises:
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


def build_vae(
    input_shape: tuple[int, ...],
    generator: torch.Generator,
    *,
    hidden: int = 400,
    latent: int = 32,
    n_classes: int | None = None,
    class_priors: bool = False,
) -> PixelVAE:
    """Builds the VAE of the generation experiments, initialised from the generator."""
    with torch.device("meta"):
        network = PixelVAE(input_shape, hidden=hidden, latent=latent, n_classes=n_classes, class_priors=class_priors)
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
