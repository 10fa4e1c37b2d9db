"""Variational autoencoder, the paper's density (appendix C): of linear layers, or of any column and decoder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from cndpm.experts.neural import LikelihoodName
from cndpm.experts.neural.fused import reparametrise
from cndpm.experts.neural.lateral import Column, Features, LateralMLP
from cndpm.experts.neural.likelihoods import make_likelihood
from cndpm.experts.neural.parts import Density


class VAE(Density):
    r"""p(x) bounded from below by an encoder and a decoder.

    .. math::
        \log p(x) \ge \tfrac1S \sum_s \log p(x \mid z_s) - \mathrm{KL}(q(z \mid x) \,\|\, \mathcal N(0, I)),
        \qquad z_s \sim q(z \mid x)

    This is the bound of the paper's release. The encoder is a column with lateral connections, fully connected unless
    another is given; the decoder, codes (n, latent_dim) to outputs (n, d), is the expert's own. `n_samples` latent
    samples evaluate the density, `n_train_samples` train it.
    """

    noise: Tensor

    def __init__(
        self,
        input_shape: tuple[int, ...],
        *,
        hidden: Sequence[int] = (64, 64),
        decoder_hidden: Sequence[int] = (64, 64),
        latent_dim: int = 16,
        likelihood: LikelihoodName = "unit-gaussian",
        variance_rate: float = 1.0,
        min_variance: float = 1e-4,
        n_samples: int = 16,
        n_train_samples: int = 16,
        lateral_widths: Sequence[int] = (),
        encoder: Column | None = None,
        decoder: nn.Sequential | None = None,
    ) -> None:
        super().__init__()
        self.input_shape = input_shape
        self.latent_dim = latent_dim
        self.n_train_samples = n_train_samples
        n_features = math.prod(input_shape)
        self.encoder = LateralMLP(n_features, hidden, lateral_widths) if encoder is None else encoder
        self.code = nn.Linear(self.encoder.out_features, 2 * latent_dim)
        self.decoder = _mlp([latent_dim, *decoder_hidden, n_features]) if decoder is None else decoder
        self.likelihood = make_likelihood(
            likelihood, n_features, variance_rate=variance_rate, min_variance=min_variance
        )
        self.register_buffer("noise", evaluation_noise(n_samples, latent_dim), persistent=False)

    @property
    def feature_widths(self) -> tuple[int, ...]:
        return self.encoder.widths

    def features(self, x: Tensor, lateral: Features) -> Features:
        return self.encoder(x, lateral)  # type: ignore[no-any-return]

    def strip(self) -> None:
        del self.code, self.decoder, self.likelihood

    def check(self, x: Tensor) -> None:
        self.likelihood.check(x)

    def kernel_log_prob(self, x: Tensor, centres: Tensor) -> Tensor:
        return self.likelihood.kernel_log_prob(x, centres)

    def log_prob(self, x: Tensor, lateral: Features = ()) -> Tensor:
        # By fixed noise, the same for every sample and every expert: deterministic and comparable.
        return self.answer(x, None, lateral)

    def answer(self, x: Tensor, own: Features | None, lateral: Features) -> Tensor:
        return self._bound(x, lateral, self.noise.unsqueeze(1), own)

    def loss(self, x: Tensor, lateral: Features, generator: torch.Generator) -> Tensor:
        noise = torch.randn(self.n_train_samples, len(x), self.latent_dim, generator=generator, device=x.device)
        return -self._bound(x, lateral, noise)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        z = torch.randn(n, self.latent_dim, generator=generator, device=self.noise.device)
        return self.likelihood.sample(self.decoder(z), generator).reshape(n, *self.input_shape)

    def _bound(self, x: Tensor, lateral: Features, noise: Tensor, own: Features | None = None) -> Tensor:
        """Returns the bound for noise (S, batch or 1, latent), (batch,)."""
        own = self.features(x, lateral) if own is None else own
        code = self.code(self.encoder.top(own, lateral))
        z, kl = reparametrise(code, noise)
        return self.log_x(x.flatten(1), z).mean(dim=0) - kl

    def log_x(self, x: Tensor, z: Tensor) -> Tensor:
        """Returns log p(x | z), (S, batch), of x (batch, d) and z (S, batch, latent)."""
        last = self.decoder[-1]
        if isinstance(last, nn.Linear):
            return self.likelihood.linear_log_prob(x, self.decoder[:-1](z), last)
        return self.likelihood.log_prob(x, self.decoder(z.flatten(0, 1)).view(*z.shape[:2], -1))


def evaluation_noise(n_samples: int, latent_dim: int) -> Tensor:
    """Returns fixed standard normal noise in antithetic pairs, (n_samples, latent_dim): odd moments cancel exactly."""
    generator = torch.Generator().manual_seed(0)
    half = torch.randn((n_samples + 1) // 2, latent_dim, generator=generator)
    return torch.cat([half, -half])[:n_samples]


def _mlp(widths: Sequence[int]) -> nn.Sequential:
    """Makes linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])
