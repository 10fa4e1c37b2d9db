"""Learning without forgetting: on new data, go on answering as the network did before."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.components import NetworkSettings
from cndpm.baselines.shared.composed import ClassifierLearner
from cndpm.baselines.shared.task_progress import RememberingLearner, distillation, only


class LwF(RememberingLearner, ClassifierLearner):
    r"""Learning without forgetting (Li and Hoiem 2017) with one output layer.

    .. math:: \mathcal{L} = \frac{1}{t} \mathrm{CE}(f(x), y)
        + \left(1 - \frac{1}{t}\right) T^2\, \mathrm{CE}\left(\sigma(f_{t-1}(x) / T), \sigma(f(x) / T)\right)

    in task :math:`t`, where the teacher :math:`f_{t-1}` is the network at the end of the task before and answers for
    the classes it knew.

    Departures: one output layer for all classes, the softmax over those seen so far, and the two terms weighted by the
    number of tasks, all after the class-incremental comparison of van de Ven and Tolias (2018).
    """

    class Settings(NetworkSettings):
        """The teacher's temperature."""

        temperature: float = Field(2.0, gt=0, description="T, which softens the teacher's answers")
        learning_rate: float = Field(1e-4, gt=0, le=10, description="step size")

    settings: Settings

    def _make(self) -> None:
        super()._make()
        self.teacher = self._frozen("teacher", self.network)

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        self.progress.see(y)
        logits = only(self.network.train()(x), self.progress.seen)
        loss = F.cross_entropy(logits, y)
        if self.teacher.network is not None:
            with torch.no_grad():
                answers = only(self.teacher.network(x), self.progress.known)
            share = self.progress.share_of_present
            loss = share * loss + (1 - share) * distillation(logits, answers, temperature=self.settings.temperature)
        self.trainer.step(loss)
