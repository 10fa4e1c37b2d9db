"""The same network without the difficulty: it learns data in random order, once (online) or many times (offline)."""

from __future__ import annotations

import math
from typing import Unpack

import torch
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.augmentation import Augmentation, AugmentationName
from cndpm.baselines.shared.composed import StreamFacts
from cndpm.baselines.shared.growing_samples import GrowingSamples
from cndpm.baselines.shared.objective import ObjectiveLearner
from cndpm.baselines.shared.training import NetworkSettings

__all__ = ["IIDOffline", "IIDOnline"]


class IIDOnline(ObjectiveLearner):
    """The reference for one pass: plain gradient steps, as :class:`FineTune`, meant for a shuffled stream.

    Departures: none; on a stream with tasks in order it is fine-tuning.

    Example:
        >>> learner = IIDOnline(IIDOnline.Settings(hidden=8), input_shape=(4,), n_classes=2)
        >>> learner.learn(torch.rand(6, 4), torch.arange(6) % 2)
    """

    class Settings(NetworkSettings):
        """Nothing beside the network and its optimiser."""

    settings: Settings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        self.train_on(*self.received(x, y))


class IIDOffline(ObjectiveLearner):
    r"""The reference without a limit: collects the stream, then trains on all of it in random order.

    The learning rate follows half a cosine, :math:`\lambda_t = \tfrac{\lambda}{2}(1 + \cos(\pi t / T))`.

    Departures: the paper names augmentation, learning-rate decay, up to 100 epochs and larger batches, but neither
    which nor how; shifts (random crops of padded images), mirror images for colour images and the cosine are this
    implementation's. Unlabelled data is not augmented, because its density is what is measured.

    Args:
        settings: Of this learner.
        **facts: Of the stream; see :class:`cndpm.learner.Learner`.

    Example:
        >>> learner = IIDOffline(IIDOffline.Settings(hidden=8, epochs=2), input_shape=(4,), n_classes=2)
        >>> learner.learn(torch.rand(6, 4), torch.arange(6) % 2)
        >>> learner.finish()
    """

    class Settings(NetworkSettings):
        """The offline schedule."""

        epochs: int = Field(100, ge=1, le=1000, description="passes over the collected stream")
        batch_size: int = Field(128, ge=1, description="samples per step")
        augmentation: AugmentationName = Field("auto", description="auto: crop-flip for colour images, shift for grey")
        learning_rate: float = Field(1e-3, gt=0, le=10, description="step size at the start, decayed to zero")

    settings: Settings

    def __init__(self, settings: Settings, **facts: Unpack[StreamFacts]) -> None:
        super().__init__(settings, **facts)
        name = "none" if self.n_classes is None else settings.augmentation
        self.augmentation = Augmentation(name, self.input_shape, self.random.generator)
        self.samples = GrowingSamples()
        self.parts["samples"] = self.samples

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.received(x, y)
        self.samples.add(**({"x": x} if y is None else {"x": x, "y": y}))

    def finish(self) -> None:
        if not len(self.samples):
            return
        rows = self.samples.rows()
        n_steps_per_epoch = math.ceil(len(self.samples) / self.settings.batch_size)
        for epoch in range(self.settings.epochs):
            self._train_epoch(rows, first_step=epoch * n_steps_per_epoch)
        self.samples.clear()

    def _train_epoch(self, rows: dict[str, Tensor], *, first_step: int) -> None:
        order = torch.randperm(len(rows["x"]), generator=self.random.generator)
        batches = torch.split(order, self.settings.batch_size)
        n_steps = self.settings.epochs * len(batches)
        for step, index in enumerate(batches, start=first_step):
            self.trainer.set_learning_rate(self.settings.learning_rate * 0.5 * (1 + math.cos(math.pi * step / n_steps)))
            batch = {name: value[index.to(value.device)] for name, value in rows.items()}
            self.train_on(self.augmentation(batch["x"]), batch.get("y"))
