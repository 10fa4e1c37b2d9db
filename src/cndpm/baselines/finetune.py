"""Fine-tuning: the network takes one step on every batch as it arrives, and nothing guards what it knew."""

from __future__ import annotations

from torch import Tensor

from cndpm.baselines.shared.components import NetworkSettings
from cndpm.baselines.shared.composed import ObjectiveLearner


class FineTune(ObjectiveLearner):
    r"""Plain stochastic gradient descent along the stream, the lower bound of every comparison.

    .. math:: \theta \leftarrow \theta - \lambda \nabla_\theta \frac{1}{B} \sum_b \ell(x_b, y_b; \theta)

    The loss is the cross entropy of a classifier, or the negative ELBO of a VAE where the stream has no labels.

    Departures: none known; the optimiser is not given in the paper, the default is measured (docs/results).
    """

    Settings = NetworkSettings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        self.train_on(*self.received(x, y))
