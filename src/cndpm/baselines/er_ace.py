"""ER-ACE: new classes are learned among themselves, and compared with old ones only in replay."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from cndpm.baselines.shared.replay import ReplayLearner, ReplaySettings


def among_present(logits: Tensor, y: Tensor) -> Tensor:
    """Sets the logits (batch, n_classes) of classes that do not occur in y (batch,) to minus infinity."""
    absent = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
    return logits.masked_fill(absent.index_fill_(0, y, False), float("-inf"))


class ERACE(ReplayLearner):
    r"""Experience replay with asymmetric cross entropy (Caccia et al. 2022).

    .. math:: \mathcal{L} = \mathrm{CE}_{C(B)}(f(x), y) + \mathrm{CE}_{all}(f(x'), y'), \qquad (x', y') \sim \mathcal{M}

    where the softmax of the first term runs over the classes :math:`C(B)` of the incoming batch only, so that a new
    class does not push the old ones' representations aside.

    Departures: both terms share one forward pass; the second one's softmax runs over all classes, seen or not.
    """

    Settings = ReplaySettings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        past = self.replayed(len(x)) if len(self.memory) else {"x": x[:0], "y": y[:0]}
        self.trainer.recorded(self._step, self.augmentation(torch.cat([x, past["x"]])), y, past["y"])
        self.memory.add(x=x, y=y)

    def _step(self, inputs: Tensor, y: Tensor, past_y: Tensor) -> None:
        logits, past_logits = self.network.train()(inputs).split([len(y), len(past_y)])
        loss = F.cross_entropy(among_present(logits, y), y)
        if len(past_y):
            loss = loss + F.cross_entropy(past_logits, past_y)
        self.trainer.step(loss)
