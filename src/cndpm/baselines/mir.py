"""Maximally interfered retrieval: replay what the coming step would hurt most."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor
from torch.func import functional_call

from cndpm.baselines.shared.replay import ReplayLearner, ReplaySettings


class MIR(ReplayLearner):
    r"""Experience replay with maximally interfered retrieval (Aljundi et al. 2019).

    Of `candidates` samples drawn from the reservoir, those are replayed whose loss a step on the incoming batch alone
    would raise most:

    .. math:: s(x') = \ell(x'; \theta - \lambda \nabla \mathcal{L}(B; \theta)) - \ell(x'; \theta)

    Departures: the virtual step is plain gradient descent at `virtual_rate` whatever the optimiser is; candidates are
    evaluated as in prediction, so that batch normalisation's statistics follow real steps only.
    """

    class Settings(ReplaySettings):
        """The memory and the retrieval."""

        candidates: int = Field(50, ge=1, description="samples among which the most interfered are chosen")
        virtual_rate: float = Field(0.05, gt=0, description="step size of the virtual step, lambda")

    settings: Settings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        inputs, labels = x, y
        if len(self.memory):
            candidates = self.memory.sample(self.settings.candidates)
            interference = self._interference(x, y, candidates["x"], candidates["y"])
            n_chosen = min(self.settings.n_replayed(len(x)), len(interference))
            chosen = interference.topk(n_chosen).indices
            inputs, labels = self.joined(x, y, {name: rows[chosen] for name, rows in candidates.items()})
        self.trainer.step(F.cross_entropy(self.network.train()(inputs), labels))
        self.memory.add(x=x, y=y)

    def _interference(self, x: Tensor, y: Tensor, x_past: Tensor, y_past: Tensor) -> Tensor:
        """Returns how much a step on (x, y) would raise the loss of each past sample, (n_past,)."""
        network = self.network.eval()
        weights = dict(network.named_parameters())
        gradients = torch.autograd.grad(F.cross_entropy(network(x), y), list(weights.values()))
        with torch.no_grad():
            moved = {
                name: weight - self.settings.virtual_rate * gradient
                for (name, weight), gradient in zip(weights.items(), gradients, strict=True)
            }
            after = F.cross_entropy(functional_call(network, moved, (x_past,)), y_past, reduction="none")
            return after - F.cross_entropy(network(x_past), y_past, reduction="none")
