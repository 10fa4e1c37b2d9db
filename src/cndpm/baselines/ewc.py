"""Elastic weight consolidation: weights that earlier tasks need are held by springs."""

from __future__ import annotations

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from cndpm.baselines.shared.penalty import PenalisedLearner, PenaltySettings, mean_over_gradients


def fisher_information(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    r"""Returns the diagonal of the empirical Fisher information, (n_parameters,); the network is left unchanged.

    .. math:: F_i = \frac{1}{N} \sum_n \left(\partial_{\theta_i} \log p(y_n \mid x_n; \theta)\right)^2
    """
    return mean_over_gradients(network, F.cross_entropy, x, y, of=Tensor.square)


class EWC(PenalisedLearner):
    r"""Elastic weight consolidation (Kirkpatrick et al. 2017).

    .. math:: \mathcal{L}(\theta) = \mathcal{L}_t(\theta)
        + \frac{\lambda}{2} \sum_{s < t} \sum_i F_{s,i} (\theta_i - \theta^*_{s,i})^2

    with the Fisher information :math:`F_s` and the weights :math:`\theta^*_s` at the end of each task :math:`s`.

    Departures: the Fisher information is empirical (observed labels), from at most `importance_samples` samples of a
    task; the tasks' penalties are kept as two vectors, which is exact.
    """

    class Settings(PenaltySettings):
        """The penalty's weight and the samples that measure importance."""

        strength: float = Field(100.0, ge=0, description="weight of the penalty, lambda")

    settings: Settings

    def _consolidate(self, rows: dict[str, Tensor], weights: Tensor) -> None:
        self.penalty.add(fisher_information(self.network, **rows), weights)


class OnlineEWC(EWC):
    r"""Online elastic weight consolidation (Schwarz et al. 2018, "Progress & Compress").

    .. math:: \mathcal{L}(\theta) = \mathcal{L}_t(\theta)
        + \frac{\lambda}{2} \sum_i \tilde F_{t-1,i} (\theta_i - \theta^*_{t-1,i})^2, \qquad
        \tilde F_t = \gamma \tilde F_{t-1} + F_t

    Departures: as for :class:`EWC`.
    """

    class Settings(EWC.Settings):
        """As EWC, with a decay of old importances."""

        decay: float = Field(1.0, ge=0, le=1, description="factor on the importance of earlier tasks, gamma")

    settings: Settings

    def _consolidate(self, rows: dict[str, Tensor], weights: Tensor) -> None:
        self.penalty.accumulate(fisher_information(self.network, **rows), weights, decay=self.settings.decay)
