"""The oracle: Algorithm 1 in plain loops, against which tests and benchmarks hold the fast path.

Nothing here is batched over experts, cached or fused: features of earlier experts are computed anew for every expert
and every step, losses are written out from their definitions, the optimiser is the textbook's Adam. It draws the same
random numbers in the same order as the fast path, so that the two agree to rounding.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from cndpm.experts.neural.lateral import Column, Features, LateralMLP
from cndpm.experts.neural.lateral_predictors import Classifier
from cndpm.experts.neural.vae import VAE
from cndpm.model.settings import CNDPMSettings, FixedNovelty, NeuralExperts
from cndpm.model.settings.architecture import PlainNetworks, Training
from cndpm.model.settings.network_kinds import NetworkPredictor, Variational

__all__ = ["Oracle"]


class _PlainAdam:
    """Adam (Kingma & Ba 2015), gradients clipped by value, one parameter after the other."""

    def __init__(self, module: nn.Module, lr: float, training: Training) -> None:
        self.parameters = list(module.parameters())
        self.lr, self.clip, self.weight_decay = lr, training.clip, training.weight_decay
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.t = 0

    def step(self, loss: Tensor, *, penalise: bool) -> None:
        if penalise:
            loss = loss + self.weight_decay * torch.stack([p.square().sum() for p in self.parameters]).sum()
        gradients = torch.autograd.grad(loss, self.parameters)
        self.t += 1
        with torch.no_grad():
            for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
                g = g.clamp(-self.clip, self.clip)
                m.copy_(0.9 * m + 0.1 * g)
                v.copy_(0.999 * v + 0.001 * g * g)
                m_hat, v_hat = m / (1 - 0.9**self.t), v / (1 - 0.999**self.t)
                p.sub_(self.lr * m_hat / (v_hat.sqrt() + 1e-8))


class _PlainExpert:
    def __init__(self, density: VAE, predictor: Classifier, training: Training) -> None:
        self.density, self.predictor = density, predictor
        self.density_adam = _PlainAdam(density, training.density_lr, training)
        self.predictor_adam = _PlainAdam(predictor, training.predictor_lr, training)


class Oracle:
    """CN-DPM with MLP experts, closed classes, unit-variance Gaussian likelihood and the mean of the ELBOs.

    Args:
        settings: As for CN-DPM; `sleep_until` must be "steps", `likelihood` "unit-gaussian", `bound` "elbo".
        input_shape: Shape of one sample.
        n_classes: Number of classes.
        seed: As for CN-DPM; the same seed gives the same initialisations and draws.

    Example:
        >>> settings = CNDPMSettings.paper(memory_size=4, hidden=8, density_sleep_steps=2, predictor_sleep_steps=2)
        >>> oracle = Oracle(settings, input_shape=(3,), n_classes=2)
        >>> oracle.learn(torch.rand(4, 3), torch.tensor([0, 1, 0, 1]))
        >>> len(oracle.experts), oracle.predict_log_proba(torch.rand(5, 3)).shape
        (1, torch.Size([5, 2]))
    """

    def __init__(self, settings: CNDPMSettings, *, input_shape: tuple[int, ...], n_classes: int, seed: int = 0) -> None:
        experts, novelty = settings.experts, settings.novelty
        if not isinstance(experts, NeuralExperts) or not isinstance(novelty, FixedNovelty):
            raise ValueError("the oracle knows neural experts and a given log_alpha only")
        networks, density, predictor = experts.architecture.resolved(input_shape), experts.density, experts.predictor
        if not isinstance(networks, PlainNetworks) or not isinstance(predictor, NetworkPredictor):
            raise ValueError("the oracle knows fully connected networks only (architecture='mlp')")
        if not isinstance(density, Variational) or experts.training.sleep_until != "steps":
            raise ValueError("the oracle knows density='vae' and sleep_until='steps' only")
        if density.likelihood != "unit-gaussian":
            raise ValueError("the oracle knows likelihood='unit-gaussian' only")
        self.log_alpha = novelty.log_alpha
        self.experts_settings, self.training = experts, experts.training
        self.networks, self.density, self.predictor = networks, density, predictor
        self.settings, self.input_shape, self.n_classes, self.seed = settings, input_shape, n_classes, seed
        self.generator = torch.Generator().manual_seed(seed)
        self.experts: list[_PlainExpert] = []
        self.counts: list[float] = []
        self.memory: list[tuple[Tensor, Tensor]] = []
        self.placeholder = self._make_expert(0)

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Learns one batch: samples are routed one by one, then each responsible expert takes one step.

        Args:
            x: Inputs, (batch, *input_shape).
            y: Class indices, (batch,).
        """
        rho, is_new = self.responsibilities(x, y)
        self._update(x, y, rho)
        waiting = []
        for n in range(len(x)):
            if is_new[n] and len(self.memory) < self.settings.memory_size:
                self.memory.append((x[n], y[n]))
            elif is_new[n]:
                waiting.append(n)
        if len(self.memory) >= self.settings.memory_size:
            self.sleep()
            if waiting:
                self.learn(x[waiting], y[waiting])

    def responsibilities(self, x: Tensor, y: Tensor) -> tuple[Tensor, list[bool]]:
        """Returns ρ over existing experts, (batch, n_experts) with zero rows for new samples, and which are new.

        Args:
            x: Inputs, (batch, *input_shape).
            y: Class indices, (batch,).
        """
        rho = torch.zeros(len(x), len(self.experts), dtype=torch.float64)
        is_new = []
        for n in range(len(x)):
            logs = [
                math.log(self.counts[k]) + self._log_joint(k, x[n : n + 1], y[n : n + 1])
                for k in range(len(self.experts))
            ]
            log_new = self.log_alpha + self._log_joint(-1, x[n : n + 1], y[n : n + 1])
            new = all(log_new > log for log in logs)
            is_new.append(new)
            if not new:
                largest = max(logs)
                weights = [math.exp(log - largest) for log in logs]
                for k, weight in enumerate(weights):
                    rho[n, k] = weight / sum(weights)
        return rho, is_new

    @torch.no_grad()
    def predict_log_proba(self, x: Tensor) -> Tensor:
        """Returns log-probabilities of the classes by equation 6, sample by sample, (batch, n_classes)."""
        rows = []
        for n in range(len(x)):
            sample = x[n : n + 1]
            gate = torch.tensor(
                [
                    math.log(count) + float(-self._density_loss(k, sample, self._noise(sample)))
                    for k, count in enumerate(self.counts)
                ],
                dtype=torch.float64,
            ).softmax(dim=0)
            proba = torch.stack([self._log_proba(k, sample)[0].double().exp() for k in range(len(self.experts))])
            rows.append((gate @ proba).log())
        return torch.stack(rows)

    def sleep(self) -> None:
        """Founds an expert, trained on the memory for the set number of steps."""
        x = torch.stack([x for x, _ in self.memory])
        y = torch.stack([y for _, y in self.memory])
        k = len(self.experts)
        self.experts.append(self._make_expert(k + 1))
        for _ in range(self.training.predictor_sleep_steps):
            rows = self._draw(len(x))
            loss = self._cross_entropy(k, x[rows], y[rows]).mean()
            self.experts[k].predictor_adam.step(loss, penalise=True)
        for _ in range(self.training.density_sleep_steps):
            rows = self._draw(len(x))
            loss = self._density_loss(k, x[rows], self._fresh_noise(len(rows))).mean()
            self.experts[k].density_adam.step(loss, penalise=True)
        self.experts[k].density_adam.lr *= self.training.density_wake_lr_factor
        self.experts[k].predictor_adam.lr *= self.training.predictor_wake_lr_factor
        self.counts.append(float(len(self.memory)))
        self.memory = []

    def _update(self, x: Tensor, y: Tensor, rho: Tensor) -> None:
        learned = rho.sum(dim=1) > 0
        for k, expert in enumerate(self.experts):
            if rho[:, k].sum() / len(x) > self.experts_settings.min_share:
                weight = rho[learned, k].float()
                noise = self._fresh_noise(len(weight))
                expert.density_adam.step((weight * self._density_loss(k, x[learned], noise)).sum(), penalise=False)
                loss = (weight * self._cross_entropy(k, x[learned], y[learned])).sum()
                expert.predictor_adam.step(loss, penalise=False)
            self.counts[k] += float(rho[:, k].sum())

    def _log_joint(self, k: int, x: Tensor, y: Tensor) -> float:
        """Returns log p(x, y | k), the classifier tempered; k = -1 is the placeholder."""
        with torch.no_grad():
            log_x = -self._density_loss(k, x, self._noise(x))
            log_y = torch.log_softmax(self._log_proba(k, x) / self.predictor.temperature, dim=1)[0, y[0]]
            return float(log_x[0]) + float(log_y)

    def _density_loss(self, k: int, x: Tensor, noise: Tensor) -> Tensor:
        """Returns the negative ELBO, (batch,), averaged over noise (S, batch, latent)."""
        vae = self._expert(k).density
        flat = x.flatten(1)
        mean, log_variance = vae.code(self._top(k, "density", x)).chunk(2, dim=1)
        total = torch.zeros(len(x))
        for one in noise:
            z = mean + torch.exp(log_variance / 2) * one
            reconstruction = torch.sigmoid(vae.decoder(z))
            squared_error = ((flat - reconstruction) ** 2).sum(dim=1)
            total = total + 0.5 * squared_error + 0.5 * flat.shape[1] * math.log(2 * math.pi)
        kl = 0.5 * (mean**2 + torch.exp(log_variance) - 1 - log_variance).sum(dim=1)
        loss: Tensor = total / len(noise) + kl
        return loss

    def _cross_entropy(self, k: int, x: Tensor, y: Tensor) -> Tensor:
        return -self._log_proba(k, x)[torch.arange(len(y)), y]

    def _log_proba(self, k: int, x: Tensor) -> Tensor:
        return torch.log_softmax(self._expert(k).predictor.head(self._top(k, "predictor", x)), dim=1)

    def _top(self, k: int, part: str, x: Tensor) -> Tensor:
        """Returns the input of the head of expert k: the last layers of all columns up to it, computed one by one."""
        lateral: Features = ()
        if self.experts_settings.sharing and k > 0:
            for earlier in range(k):
                own = self._column(earlier, part)(x.flatten(1), lateral)
                joined = own if not lateral else [torch.cat(pair, dim=1) for pair in zip(lateral, own, strict=True)]
                lateral = tuple(feature.detach() for feature in joined)
        return LateralMLP.top(self._column(k, part)(x.flatten(1), lateral), lateral)

    def _column(self, k: int, part: str) -> Column:
        expert = self._expert(k)
        return expert.density.encoder if part == "density" else expert.predictor.trunk

    def _expert(self, k: int) -> _PlainExpert:
        return self.placeholder if k == -1 else self.experts[k]

    def _noise(self, x: Tensor) -> Tensor:
        return self.placeholder.density.noise.unsqueeze(1).expand(-1, len(x), -1)

    def _fresh_noise(self, n: int) -> Tensor:
        samples = self.density.n_train_latent_samples or self.density.n_latent_samples
        return torch.randn(samples, n, self.density.latent_dim, generator=self.generator)

    def _draw(self, n: int) -> Tensor:
        return torch.randint(n, (self.training.sleep_batch_size,), generator=self.generator)

    def _make_expert(self, serial: int) -> _PlainExpert:
        alone = serial == 0 or not self.experts_settings.sharing or not self.experts
        widths = zip(*(expert.density.feature_widths for expert in self.experts), strict=True)
        lateral = () if alone else tuple(sum(layer) for layer in widths)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed * 1_000_003 + serial)
            density = VAE(
                self.input_shape,
                hidden=self.networks.widths(first=alone),
                decoder_hidden=self.networks.widths(first=True),
                latent_dim=self.density.latent_dim,
                n_samples=self.density.n_latent_samples,
                lateral_widths=lateral,
            )
            predictor = Classifier(
                self.input_shape,
                self.n_classes,
                hidden=self.networks.widths(first=alone),
                lateral_widths=lateral,
                closed=True,
            )
        return _PlainExpert(density, predictor, self.training)
