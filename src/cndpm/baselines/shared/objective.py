"""Objectives of a single network behind one interface: classes given x, or the density of x.

Fine-tuning, reservoir replay and the two iid references exist for both kinds of stream; they hold an objective and
never ask which.
"""

from __future__ import annotations

from typing import Protocol, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cndpm.baselines.shared.components import RandomSource
from cndpm.baselines.shared.composed import ComposedLearner, StreamFacts
from cndpm.baselines.shared.networks import LogitNetwork, build_classifier, build_vae
from cndpm.baselines.shared.pixel_vae import PixelVAE
from cndpm.baselines.shared.training import NetworkSettings, Trainer


class Objective(Protocol):
    """Defines what a network's loss and answers mean."""

    @property
    def network(self) -> nn.Module:
        """The network that learns."""

    def losses(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Returns the loss of each sample, (batch,), differentiable; y (batch,) is None on an unlabelled stream."""

    def predict_log_proba(self, x: Tensor) -> Tensor:
        """Returns log-probabilities of the classes, (batch, n_classes)."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the log density, (batch,)."""


class Classification:
    """Cross entropy of a classifier."""

    def __init__(self, network: LogitNetwork) -> None:
        self.network = network

    def losses(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Returns -log p(y | x), (batch,)."""
        assert y is not None, "a labelled stream has labels in every batch"
        return F.cross_entropy(self.network(x), y, reduction="none")

    def predict_log_proba(self, x: Tensor) -> Tensor:
        """Returns the log-softmax of the logits, (batch, n_classes)."""
        return F.log_softmax(self.network(x), dim=1)

    def log_prob(self, x: Tensor) -> Tensor:
        """Raises NotImplementedError: a classifier has no density."""
        raise NotImplementedError(f"a classifier models no density of its {len(x)} inputs; give an unlabelled stream")


class Generation:
    """The negative evidence lower bound of a VAE: one latent sample in training, several with fixed noise at test."""

    def __init__(self, network: PixelVAE, *, random: RandomSource, n_samples: int) -> None:
        self.network = network
        self.random = random
        self.n_samples = n_samples

    def losses(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Returns -ELBO, (batch,)."""
        return -self.network.elbo(x, self.random.normal(1, len(x), self.network.latent).to(x.device))

    def predict_log_proba(self, x: Tensor) -> Tensor:
        """Raises NotImplementedError: a density has no classes."""
        raise NotImplementedError(f"a VAE predicts no classes for its {len(x)} inputs; give a labelled stream")

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the ELBO averaged over the latent samples, (batch,)."""
        noise = self.random.restarted().normal(self.n_samples, 1, self.network.latent)
        return self.network.elbo(x, noise.to(x.device))


class ObjectiveLearner(ComposedLearner):
    """One network with one optimiser: a classifier on a labelled stream, a VAE on an unlabelled one."""

    settings: NetworkSettings

    def __init__(self, settings: NetworkSettings, **facts: Unpack[StreamFacts]) -> None:
        super().__init__(settings, **facts)
        self.objective = self._objective()
        self.trainer = Trainer(self.objective.network.to(self.device), settings)
        self.parts["trainer"] = self.trainer

    def _objective(self) -> Objective:
        chosen, generator = self.settings, self.random.generator
        if self.n_classes is not None:
            return Classification(
                build_classifier(chosen.network, self.input_shape, self.n_classes, generator, hidden=chosen.hidden)
            )
        vae = build_vae(self.input_shape, generator, hidden=chosen.hidden, latent=chosen.latent)
        return Generation(vae, random=self.random, n_samples=chosen.test_latent_samples)

    def train_on(self, x: Tensor, y: Tensor | None) -> None:
        """Takes one optimiser step on the mean loss of a batch that is on the device."""
        if y is None:  # the bound of a VAE draws random numbers, which cannot be recorded
            self._step(x)
        else:
            self.trainer.recorded(self._step, x, y)

    def _step(self, x: Tensor, y: Tensor | None = None) -> None:
        self.objective.network.train()
        self.trainer.step(self.objective.losses(x, y).mean())

    @torch.no_grad()
    def predict_log_proba(self, x: Tensor) -> Tensor:
        self.objective.network.eval()
        return self.objective.predict_log_proba(x.to(self.device))

    @torch.no_grad()
    def log_prob(self, x: Tensor) -> Tensor:
        self.objective.network.eval()
        return self.objective.log_prob(x.to(self.device))
