"""GDumb: keep a balanced sample, and train a fresh network on it whenever an answer is needed."""

from __future__ import annotations

import math
from collections import Counter
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from cndpm.baselines.shared.components import RandomSource, Trainer
from cndpm.baselines.shared.composed import ComposedLearner
from cndpm.baselines.shared.replay import Augmentation, ReplayMemory, ReplaySettings
from cndpm.learner import Footprint
from cndpm.state import State


def balanced_place(stored: list[int], label: int, capacity: int, generator: torch.Generator) -> int | None:
    """Returns the place that a new sample takes in a greedily balanced memory, or None if it is turned away.

    A sample enters while there is room, or while its class has fewer samples than the largest one, of which it then
    replaces one at random.
    """
    if len(stored) < capacity:
        return len(stored)
    counts = Counter(stored)
    largest, n_largest = max(counts.items(), key=lambda item: (item[1], -item[0]))
    if counts[label] >= n_largest:
        return None
    places = [place for place, other in enumerate(stored) if other == largest]
    return places[int(torch.randint(len(places), (), generator=generator))]


class GDumb(ComposedLearner):
    r"""Greedy sampler and dumb learner (Prabhu, Torr and Dokania 2020).

    Nothing is learned from the stream but its balanced sample; a network trained on that sample alone answers, with
    stochastic gradient descent whose rate follows half a cosine,
    :math:`\lambda_t = \lambda_{min} + \tfrac12 (\lambda - \lambda_{min})(1 + \cos(\pi t / T))`.

    Departures: one cosine instead of warm restarts, shifts and mirror images instead of CutMix. The network is trained
    when an answer is first asked for and kept until the memory changes; it depends on the memory and the seed alone, so
    asking has no effect on the learner.
    """

    class Settings(ReplaySettings):
        """The memory and the training."""

        epochs: int = Field(50, ge=1, le=1000, description="passes over the memory before an answer")
        batch_size: int = Field(16, ge=1, description="samples per step")
        optimizer: Literal["sgd", "adam"] = Field("sgd", description="optimiser")
        momentum: float = Field(0.9, ge=0, lt=1, description="momentum of sgd")
        learning_rate: float = Field(0.05, gt=0, le=10, description="step size at the start")
        final_learning_rate: float = Field(5e-4, gt=0, le=10, description="step size at the end")

    settings: Settings

    def _make(self) -> None:
        super()._make()
        self.memory = ReplayMemory(self.settings.memory_size, self.random.generator, device=self.device)
        self.parts["memory"] = self.memory
        self._labels: list[int] = []
        self._answering: nn.Module | None = None
        self._n_parameters = sum(p.numel() for p in self._fresh(self.random.restarted()).parameters())

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        for i, label in enumerate(y.tolist()):
            place = balanced_place(self._labels, label, self.memory.capacity, self.random.generator)
            if place is not None:
                self.memory.put([place], x=x[i : i + 1], y=y[i : i + 1])
                self._labels[place : place + 1] = [label]
                self._answering = None

    def finish(self) -> None:
        self._network()

    def predict_log_proba(self, x: Tensor) -> Tensor:
        network = self._network().eval()
        with torch.no_grad():
            return F.log_softmax(network(x.to(self.device)), dim=1)

    def footprint(self) -> Footprint:
        kept = super().footprint()
        return Footprint(self._n_parameters, self._n_parameters, kept.memory_samples, kept.memory_bytes)

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._labels = self.memory.rows["y"].tolist() if len(self.memory) else []
        self._answering = None

    def _network(self) -> nn.Module:
        if self._answering is None:
            self._answering = self._trained_network()
        return self._answering

    def _fresh(self, random: RandomSource) -> nn.Module:
        return self._new_classifier(self.required_classes(), random)

    @torch.enable_grad()
    def _trained_network(self) -> nn.Module:
        """Returns a network initialised from the seed and trained on the memory as it is."""
        chosen, random = self.settings, self.random.restarted()
        network = self._fresh(random).train()
        trainer = Trainer(network, chosen)
        augmentation = Augmentation(chosen.augmentation, self.input_shape, random.generator)
        n_batches = math.ceil(len(self.memory) / chosen.batch_size)
        for step in range(chosen.epochs * n_batches):
            if step % n_batches == 0:
                order = torch.randperm(len(self.memory), generator=random.generator)
                batches = torch.split(order, chosen.batch_size)
            fall = 0.5 * (1 + math.cos(math.pi * step / (chosen.epochs * n_batches)))
            low = chosen.final_learning_rate
            trainer.set_learning_rate(low + (chosen.learning_rate - low) * fall)
            rows = self.memory.take(batches[step % n_batches])
            trainer.step(F.cross_entropy(network(augmentation(rows["x"])), rows["y"]))
        return network
