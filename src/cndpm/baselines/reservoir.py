"""Experience replay from a reservoir: every batch is learned together with as many samples of the past."""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.baselines.shared.composed import ObjectiveLearner
from cndpm.baselines.shared.replay import ReplayLearner, ReplaySettings


class Reservoir(ReplayLearner, ObjectiveLearner):
    r"""Experience replay with reservoir sampling (Chaudhry et al. 2019, "On tiny episodic memories").

    .. math:: \nabla_\theta \frac{1}{|B| + |R|} \sum_{(x, y) \in B \cup R} \ell(x, y; \theta),
        \qquad R \sim \mathcal{M},\ |R| = |B|

    after which the reservoir :math:`\mathcal{M}` is offered the batch (Vitter 1985, Algorithm R).

    Departures: stream and memory share one forward pass, so batch normalisation sees both. On an unlabelled stream
    the network is the VAE and the memory holds x alone.
    """

    Settings = ReplaySettings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.received(x, y)
        rows = {"x": x} if y is None else {"x": x, "y": y}
        batch = rows
        if len(self.memory):
            replayed = self.replayed(len(x))
            batch = {name: torch.cat([rows[name], replayed[name]]) for name in rows}
        self.train_on(self.augmentation(batch["x"]), batch.get("y"))
        self.memory.add(**rows)
