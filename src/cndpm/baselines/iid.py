"""The same network without the difficulty: it learns data in random order, once (online) or many times (offline)."""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Tensor

from cndpm.baselines.finetune import FineTune
from cndpm.baselines.shared.components import LearnerPart, NetworkSettings
from cndpm.baselines.shared.composed import ObjectiveLearner
from cndpm.baselines.shared.replay import Augmentation, AugmentationName
from cndpm.learner import Footprint
from cndpm.state import State


class GrowingSamples(LearnerPart):
    """Every batch it was given, as rows of named tensors."""

    def __init__(self) -> None:
        self._batches: list[dict[str, Tensor]] = []

    def __len__(self) -> int:
        return sum(len(next(iter(batch.values()))) for batch in self._batches)

    def add(self, **rows: Tensor) -> None:
        """Keeps copies of a batch."""
        self._batches.append({name: value.clone() for name, value in rows.items()})

    def rows(self) -> dict[str, Tensor]:
        """Returns copies of all samples in the order they came."""
        names = self._batches[0] if self._batches else {}
        return {name: torch.cat([batch[name] for batch in self._batches]) for name in names}

    def clear(self) -> None:
        """Forgets all samples."""
        self._batches = []

    def footprint(self) -> Footprint:
        """Counts the samples held now and their bytes."""
        n_bytes = sum(value.nbytes for batch in self._batches for value in batch.values())
        return Footprint(0, 0, memory_samples=len(self), memory_bytes=n_bytes)

    def state_dict(self) -> State:
        return {"rows": self.rows()}

    def load_state_dict(self, state: State) -> None:
        self.clear()
        if state["rows"]:
            self.add(**state["rows"])


class IIDOnline(FineTune):
    """The reference for one pass: plain gradient steps, as :class:`FineTune`, meant for a shuffled stream.

    Departures: none; on a stream with tasks in order it is fine-tuning.
    """


class IIDOffline(ObjectiveLearner):
    r"""The reference without a limit: collects the stream, then trains on all of it in random order.

    The learning rate follows half a cosine, :math:`\lambda_t = \tfrac{\lambda}{2}(1 + \cos(\pi t / T))`.

    Departures: the paper names augmentation, learning-rate decay, up to 100 epochs and larger batches, but neither
    which nor how; shifts (random crops of padded images), mirror images for colour images and the cosine are this
    implementation's. Unlabelled data is not augmented, because its density is what is measured.
    """

    class Settings(NetworkSettings):
        """The offline schedule."""

        epochs: int = Field(100, ge=1, le=1000, description="passes over the collected stream")
        batch_size: int = Field(128, ge=1, description="samples per step")
        augmentation: AugmentationName = Field("auto", description="auto: crop-flip for colour images, shift for grey")
        learning_rate: float = Field(1e-3, gt=0, le=10, description="step size at the start, decayed to zero")

    settings: Settings

    def _make(self) -> None:
        super()._make()
        name = "none" if self.n_classes is None else self.settings.augmentation
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
