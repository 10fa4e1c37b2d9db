"""Memory-aware synapses: importance is how much the network's answer depends on a weight."""

from __future__ import annotations

from torch import Tensor, nn

from cndpm.baselines.shared.penalty import PenalisedLearner, PenaltySettings, mean_over_gradients


def output_sensitivity(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    r"""Returns how far the squared length of the output moves with each weight, (n_parameters,); labels play no part.

    .. math:: \Omega_i = \frac{1}{N} \sum_n \left| \partial_{\theta_i} \lVert f(x_n; \theta) \rVert_2^2 \right|
    """
    return mean_over_gradients(network, lambda output, _: output.square().sum(), x, y, of=Tensor.abs)


class MAS(PenalisedLearner):
    r"""Memory-aware synapses (Aljundi et al. 2018).

    .. math:: \mathcal{L}(\theta) = \mathcal{L}_t(\theta) + \lambda \sum_i \Omega_i (\theta_i - \theta^*_i)^2

    with the importances of all tasks summed and the anchor at the last task's end; see :func:`output_sensitivity`.

    Departures: importance is measured on at most `importance_samples` samples of the task that ends, though it needs no
    labels and the authors may use any data.
    """

    Settings = PenaltySettings

    def _consolidate(self, rows: dict[str, Tensor], weights: Tensor) -> None:
        # Twice, because the authors' penalty has no half in front.
        self.penalty.accumulate(2 * output_sensitivity(self.network, **rows), weights)
