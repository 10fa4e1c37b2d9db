"""Dark experience replay: past samples are replayed with the answers the network gave when it met them."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.replay import ReplaySettings
from cndpm.baselines.shared.replay_learner import ReplayLearner

__all__ = ["DER", "DERPlusPlus"]


class DarkReplay(ReplayLearner):
    """What both share: the forward passes of batch and memory, all in one."""

    def draws(self, x: Tensor, n_draws: int) -> tuple[Tensor, list[dict[str, Tensor]]]:
        """The batch followed by independent draws from the memory, changed at random, and the rows that were drawn."""
        rows = [self.replayed(len(x)) for _ in range(n_draws)] if len(self.memory) else []
        return self.augmentation(torch.cat([x, *(drawn["x"] for drawn in rows)])), rows


class DER(DarkReplay):
    r"""Dark experience replay (Buzzega et al. 2020).

    .. math:: \mathcal{L} = \mathrm{CE}(f(x), y)
        + \alpha\, \mathbb{E}_{(x', z') \sim \mathcal{M}} \lVert z' - f(x') \rVert^2

    with the logits :math:`z'` stored when the sample entered the reservoir; the square is averaged over classes.

    Departures: all terms share one forward pass, so batch normalisation sees the stream and the memory together.
    """

    class Settings(ReplaySettings):
        """The memory and the weight of the stored logits."""

        alpha: float = Field(0.5, ge=0, description="weight of the stored logits")

    summary: ClassVar[str] = "dark experience replay: replays stored logits"
    settings: Settings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        """One step on the batch and the stored logits; then the memory is offered the batch."""
        x, y = self.labelled(x, y)
        inputs, rows = self.draws(x, 1)
        (logits,) = self.trainer.recorded(self._step, inputs, y, *(drawn["logits"] for drawn in rows))
        self.memory.add(x=x, logits=logits)

    def _step(self, inputs: Tensor, y: Tensor, *stored: Tensor) -> tuple[Tensor]:
        """One step; the batch's logits before it. `stored`: the logits of the samples that follow the batch."""
        logits, *now = self.network.train()(inputs).split([len(y), *map(len, stored)])
        loss = F.cross_entropy(logits, y)
        for student, teacher in zip(now, stored, strict=True):
            loss = loss + self.settings.alpha * F.mse_loss(student, teacher)
        self.trainer.step(loss)
        return (logits.detach(),)


class DERPlusPlus(DarkReplay):
    r"""Dark experience replay with labels, DER++ (Buzzega et al. 2020).

    .. math:: \mathcal{L} = \mathrm{CE}(f(x), y) + \alpha\, \mathbb{E}_{(x', z')} \lVert z' - f(x') \rVert^2
        + \beta\, \mathbb{E}_{(x'', y'')} \mathrm{CE}(f(x''), y'')

    with two independent draws from the reservoir.

    Departures: as for :class:`DER`.
    """

    class Settings(ReplaySettings):
        """The memory and the weights of its two terms."""

        alpha: float = Field(0.2, ge=0, description="weight of the stored logits")
        beta: float = Field(0.5, ge=0, description="weight of the stored labels")

    summary: ClassVar[str] = "DER++: replays stored logits and labels"
    settings: Settings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        """One step on the batch, stored logits and stored labels; then the memory is offered the batch."""
        x, y = self.labelled(x, y)
        inputs, rows = self.draws(x, 2)
        stored = [rows[0]["logits"], rows[1]["y"]] if rows else []
        (logits,) = self.trainer.recorded(self._step, inputs, y, *stored)
        self.memory.add(x=x, y=y, logits=logits)

    def _step(self, inputs: Tensor, y: Tensor, *stored: Tensor) -> tuple[Tensor]:
        """One step; the batch's logits before it. `stored`: logits of the first, labels of the second draw."""
        logits, *now = self.network.train()(inputs).split([len(y), *map(len, stored)])
        loss = F.cross_entropy(logits, y)
        if stored:
            loss = loss + self.settings.alpha * F.mse_loss(now[0], stored[0])
            loss = loss + self.settings.beta * F.cross_entropy(now[1], stored[1])
        self.trainer.step(loss)
        return (logits.detach(),)
