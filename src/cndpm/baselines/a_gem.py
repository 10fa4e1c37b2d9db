"""Averaged GEM: a step must not raise the loss on a sample of the whole memory."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.replay import ReplayLearner, ReplaySettings


def project_to_reference(gradient: Tensor, reference: Tensor) -> Tensor:
    r"""Returns the nearest direction to g that does not raise the loss whose gradient is `reference`, (n_parameters,).

    .. math:: \tilde g = g - \frac{\min(0, g^\top g_{ref})}{g_{ref}^\top g_{ref}}\, g_{ref}
    """
    violation = torch.clamp_max(gradient @ reference, 0)
    return gradient - violation / (reference @ reference).clamp_min(1e-30) * reference


class AGEM(ReplayLearner):
    """Averaged gradient episodic memory (Chaudhry et al. 2019); the equation is at :func:`project_to_reference`.

    Departures: task-free. The authors' memory holds equal parts of the tasks before the present one; here it is a
    reservoir of the stream, the reference may therefore include the present distribution.
    """

    class Settings(ReplaySettings):
        """The memory and the reference batch."""

        replay_batch: int | None = Field(64, ge=1, description="samples of the reference; null: as many as the batch")

    settings: Settings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        gradient = self._gradient(x, y)
        if len(self.memory):
            reference = self._gradient(**self.replayed(len(x)))
            gradient = project_to_reference(gradient, reference)
        self.trainer.step_along(gradient)
        self.memory.add(x=x, y=y)

    def _gradient(self, x: Tensor, y: Tensor) -> Tensor:
        return self.trainer.gradient(F.cross_entropy(self.network.train()(self.augmentation(x)), y))
