"""Experts that route by Gaussians and predict by Gaussians and a network together, weighted by their past predictions.

The Gaussians' densities decide which expert is responsible and which samples are new, as they do alone. For the label
every expert also has a network; how the two are pooled is learned from how well they predicted the expert's samples
before learning them (:mod:`cndpm.mixture.pooling`). So the better of the two need not be known in advance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor

from cndpm.experts.bank import Provisional
from cndpm.experts.chunks import Samples
from cndpm.experts.composite import CompositeBank
from cndpm.experts.features.views import Jitter
from cndpm.experts.gaussian import GaussianBank
from cndpm.experts.neural.neural_bank import NeuralBank
from cndpm.experts.neural.panel import AT_ONCE
from cndpm.experts.neural.recent import RecentSamples
from cndpm.learner import Footprint
from cndpm.mixture.pooling import add_evidence, exponent_grid, mean_exponents, pool_log_proba, score_exponents
from cndpm.state import State, expect, tensor

_NEGLIGIBLE = 1e-3
"""An expert that learns less than this part of a sample of a batch is not judged on it."""


class CombinedBank(CompositeBank):
    """A Gaussian bank, which routes and predicts, and a bank of networks of the same experts, which predicts.

    For every batch networks take `wake_steps` steps, on `batch_size` of the `n_recent` latest samples, changed by
    `jitter`; none for a batch whose labels a network predicted with a mean loss below `content`, in nats. Evidence
    for or against a predictor has faded to 1/e after `horizon` samples.
    """

    def __init__(
        self,
        gaussians: GaussianBank,
        networks: NeuralBank,
        *,
        jitter: Jitter | None = None,
        n_recent: int = 500,
        wake_steps: int = 1,
        content: float = 0.0,
        batch_size: int = 50,
        horizon: float = 1000.0,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(gaussians, networks)
        self.gaussians, self.networks, self.jitter = gaussians, networks, jitter
        self.density_of = gaussians.density_of
        self.recent = RecentSamples(n_recent, device)
        self.wake_steps, self.content, self.batch_size, self.horizon = wake_steps, content, batch_size, horizon
        self._generator = torch.Generator().manual_seed(seed)
        self._grid = exponent_grid(2)
        self._evidence = torch.zeros(0, len(self._grid), dtype=torch.float64)

    @property
    def exponents(self) -> Tensor:
        """β of the Gaussians and of the network of every expert, (K, 2)."""
        return mean_exponents(self._evidence, self._grid)

    # Evaluation

    def open(self, x: Tensor, batch_size: int | None = None, *, start: int = 0) -> Iterator[Samples]:
        self.networks.open(x)
        return self.gaussians.open(x, batch_size, start=start)

    def log_density(self, samples: Samples, *, exact: bool = True) -> Tensor:
        return self.gaussians.log_density(samples, exact=exact)

    def predictive(self, samples: Samples, *, exact: bool = True) -> Tensor:
        by_gaussians = self.gaussians.predictive(samples, exact=exact)
        by_networks = self.networks.predictive(samples).double()
        return pool_log_proba(torch.stack([by_gaussians, by_networks], dim=2), self.exponents.to(by_networks.device))

    def provisional(self, samples: Samples, y: Tensor | None, *, exact: bool = True) -> Provisional:
        return self.gaussians.provisional(samples, y, exact=exact)

    # Learning

    def learn(self, samples: Samples, y: Tensor | None, responsibilities: Tensor, *, counted: bool = True) -> None:
        y = _required(y)
        learned = (responsibilities.sum(dim=1) > 0).nonzero().squeeze(1)
        if not len(learned):
            return
        surprise = self._judge(samples, y, responsibilities)
        self.gaussians.learn(samples, y, responsibilities)
        x = samples.x
        if len(learned) < len(samples):
            x, y, responsibilities = x[learned.to(x.device)], y[learned], responsibilities[learned]
        self.recent.add(x, y, responsibilities)
        for _ in range(self.wake_steps if surprise > self.content else 0):
            x, labels, shares = self.recent.draw(self.batch_size, self._generator)
            x = x if self.jitter is None else self.jitter(x, self._generator)
            self.networks.learn(Samples(x), labels, shares)

    def found(self, samples: Samples, y: Tensor | None) -> None:
        y = _required(y)
        self.gaussians.found(samples, y)
        self.networks.found(samples, y)
        n_experts = len(self.counts)
        self.recent.begin(samples.x, y.cpu(), n_experts=n_experts + 1)
        if self.jitter is not None and not n_experts:
            self.jitter.fit(samples.x, y)

    def train(self, max_steps: int) -> float:
        done = super().train(max_steps)
        if len(self._evidence) < len(self.counts):
            self._evidence = torch.cat([self._evidence, self._evidence.new_zeros(1, len(self._grid))])
        return done

    def remove(self, k: int, into: int | None) -> None:
        super().remove(k, into)
        if into is not None:
            self.recent.merge(k, into)
        self._evidence = torch.cat([self._evidence[:k], self._evidence[k + 1 :]])

    def representation(self) -> State:
        return {**super().representation(), "jitter": None if self.jitter is None else self.jitter.state_dict()}

    def adopt(self, representation: State) -> None:
        super().adopt(representation)
        if self.jitter is not None and representation["jitter"] is not None:
            self.jitter.load_state_dict(representation["jitter"])

    def _extend(self, other: Self) -> None:
        super()._extend(other)
        self._evidence = torch.cat([self._evidence, other._evidence])
        self.recent.extend(other.recent, n_experts=len(self._evidence))

    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        return self.gaussians.sample(k, n, generator)

    # What is kept

    def footprint(self) -> Footprint:
        kept = super().footprint()
        n_kept = kept.n_numbers_kept + self._evidence.numel()
        return replace(kept, n_numbers_kept=n_kept, memory_samples=len(self.recent), memory_bytes=self.recent.n_bytes)

    def describe(self) -> dict[str, Any]:
        return {"predictor_exponents": [[round(beta, 4) for beta in row] for row in self.exponents.tolist()]}

    def state_dict(self) -> State:
        return {
            "gaussians": self.gaussians.state_dict(),
            "networks": self.networks.state_dict(),
            "recent": self.recent.state_dict(),
            "jitter": None if self.jitter is None else self.jitter.state_dict(),
            "evidence": self._evidence.clone(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: State) -> None:
        self.gaussians.load_state_dict(state["gaussians"])
        self.networks.load_state_dict(state["networks"])
        n_experts = len(self.networks.counts) + (self.networks.train(0) < 1)
        self.recent.load_state_dict(state["recent"], n_classes=self.networks.n_classes, experts=n_experts)
        if self.jitter is not None:
            self.jitter.load_state_dict(state["jitter"])
        expect(state, {"evidence": tensor(len(self.networks.counts), *self._evidence.shape[1:])})
        self._evidence = state["evidence"].to("cpu", copy=True)
        self._generator.set_state(state["generator"].cpu())

    # Inside

    def _judge(self, samples: Samples, y: Tensor, responsibilities: Tensor) -> float:
        """Adds each learning expert's log-likelihood of the labels at each pooling weight; returns the mean loss."""
        by_gaussians, loss = self.gaussians.routing_predictive(samples), 0.0
        for k in (responsibilities.sum(dim=0) > _NEGLIGIBLE).nonzero().squeeze(1).tolist():
            by_network, weight = self.networks.predictive_of(k, samples).to(by_gaussians), responsibilities[:, k]
            loss -= float(weight @ by_network.gather(1, y[:, None])[:, 0])
            each = torch.stack([by_gaussians[:, k], by_network], dim=1).unsqueeze(1)
            for rows in torch.split(torch.arange(len(samples)), AT_ONCE):
                scores, before = score_exponents(each[rows], y[rows], self._grid), self._evidence[k : k + 1]
                self._evidence[k] = add_evidence(before, scores, weight[rows, None], horizon=self.horizon)[0]
        return loss / float(responsibilities.sum())


def _required(y: Tensor | None) -> Tensor:
    if y is None:
        raise ValueError("networks beside Gaussians learn class labels; got a stream without them")
    return y
