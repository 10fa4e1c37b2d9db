"""Gradient-based sample selection: keep samples whose gradients point in different directions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.penalty import per_sample_gradients
from cndpm.baselines.shared.replay import ReplayLearner, ReplaySettings


def redundancy(gradients: Tensor, references: Tensor) -> Tensor:
    r"""Returns how well the memory covers each sample already, between 0 and 2, (batch,).

    .. math:: c = 1 + \max_k \frac{\langle g, g_k \rangle}{\lVert g \rVert \lVert g_k \rVert}
    """
    cosine = F.normalize(gradients, dim=1) @ F.normalize(references, dim=1).T
    return 1 + cosine.amax(dim=1)


def choose_place(scores: Tensor, score: float, generator: torch.Generator) -> int | None:
    """Returns the place that a new sample takes in a full memory, or None if it is turned away.

    A sample that resembles the memory (score of at least 1) is turned away. Otherwise a place i is drawn in proportion
    to its score, and its sample is replaced with probability :math:`c_i / (c_i + c)`.
    """
    if score >= 1:
        return None
    place = int(torch.multinomial(scores.clamp_min(1e-12), 1, generator=generator))
    threshold = float(torch.rand((), generator=generator))
    stored = float(scores[place])
    return place if threshold * (stored + score) < stored else None


class GSS(ReplayLearner):
    """Gradient-based sample selection, the greedy variant (Aljundi et al. 2019, Algorithm 2).

    The loss is that of experience replay; the memory is filled by :func:`redundancy` and :func:`choose_place`.

    Departures: the batch's redundancies are computed against one draw of the memory before its samples are offered, and
    gradients are taken as in prediction (no batch statistics). The first sample of all counts as unlike any other.
    """

    class Settings(ReplaySettings):
        """The memory and the comparison."""

        references: int = Field(10, ge=1, description="samples of the memory that a new one is compared with")

    settings: Settings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        scores = self._scores(x, y)
        inputs, labels = x, y
        if len(self.memory):
            inputs, labels = self.joined(x, y, self.replayed(len(x)))
        self.trainer.step(F.cross_entropy(self.network.train()(inputs), labels))
        self._offer(x, y, scores)

    def _scores(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the redundancy of each sample given a draw from the memory, (batch,), on the CPU."""
        if not len(self.memory):
            return torch.full((len(x),), 0.1)
        drawn = self.memory.sample(self.settings.references)
        gradients = per_sample_gradients(
            self.network, F.cross_entropy, torch.cat([x, drawn["x"]]), torch.cat([y, drawn["y"]])
        )
        return redundancy(gradients[: len(x)], gradients[len(x) :]).cpu()

    def _offer(self, x: Tensor, y: Tensor, scores: Tensor) -> None:
        """Fills the memory, then replaces its redundant samples, sample by sample in order; scores (batch,)."""
        for i, score in enumerate(scores.tolist()):
            place: int | None = len(self.memory)
            if len(self.memory) == self.memory.capacity:
                place = choose_place(self.memory.rows["score"].cpu(), score, self.random.generator)
            if place is not None:
                self.memory.put([place], x=x[i : i + 1], y=y[i : i + 1], score=scores[i : i + 1])
