"""Classifiers with a replay memory: the memory, and batches joined with samples of it."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from cndpm.baselines.shared.augmentation import Augmentation
from cndpm.baselines.shared.composed import ClassifierLearner, StreamFacts
from cndpm.baselines.shared.replay import ReplayMemory, ReplaySettings


class ReplayLearner(ClassifierLearner):
    """A classifier, a memory and random changes of images; what is stored and what is replayed is the learner's own.

    Inputs are augmented at every use; the memory holds them unchanged.
    """

    settings: ReplaySettings

    def __init__(self, settings: ReplaySettings, **facts: Unpack[StreamFacts]) -> None:
        super().__init__(settings, **facts)
        self.memory = ReplayMemory(settings.memory_size, self.random.generator, device=self.device)
        self.augmentation = Augmentation(settings.augmentation, self.input_shape, self.random.generator)
        self.parts["memory"] = self.memory

    def replayed(self, n: int) -> dict[str, Tensor]:
        """Draws the rows to replay beside a batch of n."""
        return self.memory.sample(self.settings.n_replayed(n))

    def joined(self, x: Tensor, y: Tensor, rows: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Returns the batch followed by replayed rows (of "x" and "y"), inputs augmented, and their labels."""
        return self.augmentation(torch.cat([x, rows["x"]])), torch.cat([y, rows["y"]])
