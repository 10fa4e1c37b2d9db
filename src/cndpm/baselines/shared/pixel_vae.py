"""The VAE of the generative baselines: Bernoulli pixels, optionally with a classifier and class priors."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cndpm.baselines.shared.layers import mlp


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
    p(z | y) one Gaussian per class.

    Args:
        input_shape: Shape of one sample with values in [0, 1].
        hidden: Width of the two hidden layers of encoder and decoder.
        latent: Dimension of z.
        n_classes: With a number, a linear layer on the encoder's hidden features also classifies (replay through
            feedback); by default there is none.
        class_priors: Whether p(z | y) takes the place of p(z); wants `n_classes`.
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

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Returns mean and log variance of q(z | x), each (batch, latent)."""
        return self._posterior_given(self.encoder(x))

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

    def _posterior_given(self, features: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.posterior(features).chunk(2, dim=-1)
        return mean, log_variance

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
        mean, log_variance = self._posterior_given(features)
        z = mean + torch.exp(0.5 * log_variance) * noise
        logits = self.decoder(z)
        target = x.flatten(1).expand_as(logits)
        log_likelihood = -F.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(-1).mean(0)
        prior_mean, prior_log_variance = self._prior_given(y)
        log_ratio = log_variance - prior_log_variance
        shift = (mean - prior_mean).square() * torch.exp(-prior_log_variance)
        kl = 0.5 * (shift + log_ratio.exp() - 1 - log_ratio).sum(-1)
        return log_likelihood - kl
