"""Deep generative replay: a generator dreams the past, and the previous network labels the dreams."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from cndpm.baselines.shared.components import Trainer
from cndpm.baselines.shared.composed import ClassifierLearner
from cndpm.baselines.shared.task_progress import DreamerSettings, RememberingLearner, only


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
