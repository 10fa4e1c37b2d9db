"""Dark experience replay: past samples are replayed with the answers the network gave when it met them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.replay import ReplaySettings
from cndpm.baselines.shared.replay_learner import ReplayLearner

__all__ = ["DER", "DERPlusPlus"]


class DarkReplay(ReplayLearner):
    """Joins batch and memory for one forward pass; the base of DER and DER++."""

    def draws(self, x: Tensor, n_draws: int) -> tuple[Tensor, list[dict[str, Tensor]]]:
        """Returns the batch followed by independent draws from the memory, augmented, and the rows drawn."""
        rows = [self.replayed(len(x)) for _ in range(n_draws)] if len(self.memory) else []
        return self.augmentation(torch.cat([x, *(drawn["x"] for drawn in rows)])), rows


class DER(DarkReplay):
    r"""Dark experience replay (Buzzega et al. 2020).

    .. math:: \mathcal{L} = \mathrm{CE}(f(x), y)
        + \alpha\, \mathbb{E}_{(x', z') \sim \mathcal{M}} \lVert z' - f(x') \rVert^2

    with the logits :math:`z'` stored when the sample entered the reservoir; the square is averaged over classes.

    Departures: all terms share one forward pass, so batch normalisation sees the stream and the memory together.

    Example:
        >>> learner = DER(DER.Settings(hidden=8, memory_size=20), input_shape=(4,), n_classes=2)
        >>> learner.learn(torch.rand(6, 4), torch.arange(6) % 2)
    """

    class Settings(ReplaySettings):
        """The memory and the weight of the stored logits."""

        alpha: float = Field(0.5, ge=0, description="weight of the stored logits")

    settings: Settings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        inputs, rows = self.draws(x, 1)
        (logits,) = self.trainer.recorded(self._step, inputs, y, *(drawn["logits"] for drawn in rows))
        self.memory.add(x=x, logits=logits)

    def _step(self, inputs: Tensor, y: Tensor, *stored: Tensor) -> tuple[Tensor]:
        """Takes one step; returns the batch's logits before it. `stored`: the logits of the samples after the batch."""
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

    Example:
        >>> learner = DERPlusPlus(DERPlusPlus.Settings(hidden=8, memory_size=20), input_shape=(4,), n_classes=2)
        >>> learner.learn(torch.rand(6, 4), torch.arange(6) % 2)
    """

    class Settings(ReplaySettings):
        """The memory and the weights of its two terms."""

        alpha: float = Field(0.2, ge=0, description="weight of the stored logits")
        beta: float = Field(0.5, ge=0, description="weight of the stored labels")

    settings: Settings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        inputs, rows = self.draws(x, 2)
        stored = [rows[0]["logits"], rows[1]["y"]] if rows else []
        (logits,) = self.trainer.recorded(self._step, inputs, y, *stored)
        self.memory.add(x=x, y=y, logits=logits)

    def _step(self, inputs: Tensor, y: Tensor, *stored: Tensor) -> tuple[Tensor]:
        """Takes one step; returns the batch's logits before it. `stored`: logits of draw one, labels of draw two."""
        logits, *now = self.network.train()(inputs).split([len(y), *map(len, stored)])
        loss = F.cross_entropy(logits, y)
        if stored:
            loss = loss + self.settings.alpha * F.mse_loss(now[0], stored[0])
            loss = loss + self.settings.beta * F.cross_entropy(now[1], stored[1])
        self.trainer.step(loss)
        return (logits.detach(),)
