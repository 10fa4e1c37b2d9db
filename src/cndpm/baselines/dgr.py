"""Generative replay: dreams of the past, labelled by the previous network (DGR) or the one that dreams them (RtF)."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.components import Trainer
from cndpm.baselines.shared.composed import ClassifierLearner
from cndpm.baselines.shared.task_progress import DreamerSettings, RememberingLearner, distillation, only


class DGR(RememberingLearner, ClassifierLearner):
    r"""Deep generative replay (Shin et al. 2017).

    Beside the classifier :math:`f` a VAE :math:`G` learns the inputs. In task :math:`t` both learn the batch and as
    many dreams :math:`x' \sim G_{t-1}` of the previous generator, which the previous classifier labels:

    .. math:: \mathcal{L} = \frac{1}{t} \ell(x, y) + \left(1 - \frac{1}{t}\right) \ell(x', \arg\max f_{t-1}(x'))

    Departures: the generator is a VAE instead of the authors' GAN, as in van de Ven and Tolias (2018); the softmax runs
    over the classes seen so far; each batch is learned in `n_steps` steps with fresh dreams, because a VAE that has
    taken a few hundred steps dreams in blends of digits: theirs took 2,000 a task.
    """

    Settings = DreamerSettings
    settings: DreamerSettings

    def _make(self) -> None:
        super()._make()
        self.vae = self._new_vae()
        self.vae_trainer = Trainer(self.vae, self.settings)
        self.parts["vae"] = self.vae_trainer
        self.past_network, self.past_vae = (
            self._frozen("past_network", self.network),
            self._frozen("past_vae", self.vae),
        )

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        self.progress.see(y)
        for _ in range(self.settings.n_steps):
            inputs, labels, weights = self._with_dreams(x, y)
            noise = self.random.normal(1, len(inputs), self.vae.latent).to(self.device)
            self.trainer.recorded(self._step, inputs, labels, weights, noise)

    def _step(self, inputs: Tensor, labels: Tensor, weights: Tensor, noise: Tensor) -> None:
        losses = F.cross_entropy(only(self.network.train()(inputs), self.progress.seen), labels, reduction="none")
        self.trainer.step(weights @ losses)
        self.vae_trainer.step(-(weights @ self.vae.elbo(inputs, noise)))

    @torch.no_grad()
    def _with_dreams(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns inputs, labels and the weight of each sample's loss; the weights sum to one."""
        even = torch.full((len(x),), 1 / len(x), device=self.device)
        if self.past_network.network is None or self.past_vae.network is None:
            return x, y, even
        dreams = self.past_vae.network.sample(len(x), self.random.generator)
        labels = only(self.past_network.network(dreams), self.progress.known).argmax(1)
        share = self.progress.share_of_present
        return torch.cat([x, dreams]), torch.cat([y, labels]), torch.cat([share * even, (1 - share) * even])


class RtF(RememberingLearner):
    r"""Replay through feedback (van de Ven and Tolias 2018).

    One VAE with a classifier on its encoder. In task :math:`t` it learns the batch with its labels and as many dreams
    :math:`x'` of its previous self with that self's softened answers :math:`z'`:

    .. math:: \mathcal{L} = \frac{1}{t} \left[\mathrm{CE}(x, y) - \tfrac{1}{d} \mathrm{ELBO}(x)\right]
        + \left(1 - \frac{1}{t}\right) \left[\mathrm{KD}_T(x', z') - \tfrac{1}{d} \mathrm{ELBO}(x')\right]

    with :math:`d` inputs.

    Departures: always the MLP encoder, whatever the inputs; each batch is learned in `n_steps` steps with fresh
    dreams, for the reason given at :class:`DGR`; and dreams are asked for by class, from a learned
    Gaussian per class over the latent space, the conditional replay of van de Ven, Siegelmann and Tolias (2020).
    `prior="standard"` is the first paper's single prior, whose dreams between two digits belong to neither.
    """

    class Settings(DreamerSettings):
        """The temperature of the replayed answers, and where dreams come from."""

        temperature: float = Field(2.0, gt=0, description="T, which softens the previous answers")
        prior: Literal["classes", "standard"] = Field(
            "classes", description="latent prior of dreams: classes, a Gaussian for each in turn; standard, one for all"
        )

    settings: Settings

    def _make(self) -> None:
        super()._make()
        self.network = self._new_vae(n_classes=self.n_classes, class_priors=self.settings.prior == "classes")
        self.trainer = Trainer(self.network, self.settings)
        self.parts["trainer"] = self.trainer
        self.past = self._frozen("past", self.network)

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        self.progress.see(y)
        for _ in range(self.settings.n_steps):
            past = self._dreams(len(x))
            noise = self.random.normal(1, len(x) * (2 if past else 1), self.network.latent).to(self.device)
            self.trainer.recorded(self._step, x, y, noise, *past)

    def _logits(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network.classify(x)
        return logits

    @torch.no_grad()
    def _dreams(self, n: int) -> tuple[Tensor, ...]:
        """Returns dreams, their classes, the previous network's answers and their weight; () in the first task."""
        if self.past.network is None:
            return ()
        classes = self.progress.known_in_turn(n)
        dreams = self.past.network.sample(n, self.random.generator, self._labels(classes))
        answers = only(self.past.network.classify(dreams), self.progress.known)
        return dreams, classes, answers, dreams.new_tensor(1 - self.progress.share_of_present)

    def _labels(self, y: Tensor) -> Tensor | None:
        """Returns the labels if the network has a prior for each class, else None."""
        return y if self.settings.prior == "classes" else None

    def _step(self, x: Tensor, y: Tensor, noise: Tensor, *past: Tensor) -> None:
        inputs, labels = (torch.cat([x, past[0]]), torch.cat([y, past[1]])) if past else (x, y)
        logits, bounds = self.network.train().classify_and_bound(inputs, noise, self._labels(labels))
        logits, bounds = only(logits, self.progress.seen), bounds / math.prod(self.input_shape)
        loss = F.cross_entropy(logits[: len(x)], y) - bounds[: len(x)].mean()
        if past:
            _, _, answers, weight = past
            replayed = distillation(logits[len(x) :], answers, temperature=self.settings.temperature)
            loss = (1 - weight) * loss + weight * (replayed - bounds[len(x) :].mean())
        self.trainer.step(loss)
