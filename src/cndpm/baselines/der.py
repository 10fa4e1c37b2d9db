"""Dark experience replay: past samples are replayed with the answers the network gave when it met them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.replay import ReplayLearner, ReplaySettings


class DER(ReplayLearner):
    r"""Dark experience replay (Buzzega et al. 2020).

    .. math:: \mathcal{L} = \mathrm{CE}(f(x), y)
        + \alpha\, \mathbb{E}_{(x', z') \sim \mathcal{M}} \lVert z' - f(x') \rVert^2

    with the logits :math:`z'` stored when the sample entered the reservoir; the square is averaged over classes.

    Departures: all terms share one forward pass, so batch normalisation sees the stream and the memory together.
    """

    class Settings(ReplaySettings):
        """The memory and the weight of the stored logits."""

        alpha: float = Field(0.5, ge=0, description="weight of the stored logits")

    settings: Settings
    kept: ClassVar[tuple[str, ...]] = ("logits",)
    """Columns of the memory beside x, each with a draw and a term of the loss of its own."""

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        inputs, rows = self.draws(x)
        stored = [drawn[name] for drawn, name in zip(rows, self.kept, strict=False)]
        (logits,) = self.trainer.recorded(self._step, inputs, y, *stored)
        columns = {"y": y, "logits": logits}
        self.memory.add(x=x, **{name: columns[name] for name in self.kept})

    def draws(self, x: Tensor) -> tuple[Tensor, list[dict[str, Tensor]]]:
        """Returns the batch followed by independent draws from the memory, augmented, and the rows drawn."""
        rows = [self.replayed(len(x)) for _ in self.kept] if len(self.memory) else []
        return self.augmentation(torch.cat([x, *(drawn["x"] for drawn in rows)])), rows

    def _step(self, inputs: Tensor, y: Tensor, *stored: Tensor) -> tuple[Tensor]:
        """Takes one step; returns the batch's logits before it. `stored`: what was kept of the samples after it."""
        logits, *now = self.network.train()(inputs).split([len(y), *map(len, stored)])
        loss = F.cross_entropy(logits, y)
        for replayed, kept, term in zip(now, stored, self._terms(), strict=False):
            loss = loss + term(replayed, kept)
        self.trainer.step(loss)
        return (logits.detach(),)

    def _terms(self) -> tuple[Callable[[Tensor, Tensor], Tensor], ...]:
        """Returns the losses of replayed samples, in the order of `kept`."""
        return (lambda student, teacher: self.settings.alpha * F.mse_loss(student, teacher),)


class DERPlusPlus(DER):
    r"""Dark experience replay with labels, DER++ (Buzzega et al. 2020).

    .. math:: \mathcal{L} = \mathrm{CE}(f(x), y) + \alpha\, \mathbb{E}_{(x', z')} \lVert z' - f(x') \rVert^2
        + \beta\, \mathbb{E}_{(x'', y'')} \mathrm{CE}(f(x''), y'')

    with two independent draws from the reservoir.

    Departures: as for :class:`DER`.
    """

    class Settings(DER.Settings):
        """The memory and the weights of its two terms."""

        alpha: float = Field(0.2, ge=0, description="weight of the stored logits")
        beta: float = Field(0.5, ge=0, description="weight of the stored labels")

    settings: Settings
    kept = ("logits", "y")

    def _terms(self) -> tuple[Callable[[Tensor, Tensor], Tensor], ...]:
        return *super()._terms(), lambda logits, y: self.settings.beta * F.cross_entropy(logits, y)
