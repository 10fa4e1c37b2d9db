"""Dark experience replay: past samples are replayed with the answers the network gave when it met them."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.learners.replay import ReplaySettings
from cndpm.learners.replay_learner import ReplayLearner

__all__ = ["DER", "DERPlusPlus"]


class DarkReplay(ReplayLearner):
    """What both share: the forward passes of batch and memory, all in one."""

    def replay(self, x: Tensor, *, n_draws: int) -> tuple[Tensor, list[tuple[Tensor, dict[str, Tensor]]]]:
        """The batch's logits, and for each independent draw from the memory its logits now and its stored rows."""
        draws = [self.replayed(len(x)) for _ in range(n_draws)] if len(self.memory) else []
        inputs = self.augmentation(torch.cat([x, *(rows["x"] for rows in draws)]))
        logits, *replayed = torch.split(self.network.train()(inputs), [len(x), *(len(rows["x"]) for rows in draws)])
        return logits, list(zip(replayed, draws, strict=True))


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
        logits, draws = self.replay(x, n_draws=1)
        loss = F.cross_entropy(logits, y)
        for now, rows in draws:
            loss = loss + self.settings.alpha * F.mse_loss(now, rows["logits"])
        self.trainer.step(loss)
        self.memory.add(x=x, logits=logits.detach())


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
        logits, draws = self.replay(x, n_draws=2)
        loss = F.cross_entropy(logits, y)
        if draws:
            (now, rows), (now_too, rows_too) = draws
            loss = loss + self.settings.alpha * F.mse_loss(now, rows["logits"])
            loss = loss + self.settings.beta * F.cross_entropy(now_too, rows_too["y"])
        self.trainer.step(loss)
        self.memory.add(x=x, y=y, logits=logits.detach())
