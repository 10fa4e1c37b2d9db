"""Replay through feedback: generative replay in which classifier and generator are one network."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.components import Trainer
from cndpm.baselines.shared.task_progress import DreamerSettings, RememberingLearner, distillation, only


class RtF(RememberingLearner):
    r"""Replay through feedback (van de Ven and Tolias 2018).

    One VAE with a classifier on its encoder. In task :math:`t` it learns the batch with its labels and as many dreams
    :math:`x'` of its previous self with that self's softened answers :math:`z'`:

    .. math:: \mathcal{L} = \frac{1}{t} \left[\mathrm{CE}(x, y) - \tfrac{1}{d} \mathrm{ELBO}(x)\right]
        + \left(1 - \frac{1}{t}\right) \left[\mathrm{KD}_T(x', z') - \tfrac{1}{d} \mathrm{ELBO}(x')\right]

    with :math:`d` inputs.

    Departures: always the MLP encoder, whatever the inputs; each batch is learned in `n_steps` steps with fresh
    dreams, for the reason given at :class:`~cndpm.baselines.dgr.DGR`; and dreams are asked for by class, from a learned
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
