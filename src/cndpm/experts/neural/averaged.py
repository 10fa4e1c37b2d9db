"""A predictor that trains one network and answers with the running mean of its weights."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from cndpm.experts.neural.lateral import Features
from cndpm.experts.neural.parts import Predictor


class AveragedPredictor(Predictor):
    """Averages the iterates of stochastic gradient descent (Polyak and Juditsky 1992), the older ones with less weight.

    A stream has no end at which a learning rate could have fallen to zero; the mean of the weights varies as little as
    if it had, at any time. Later experts look at the mean's features.
    """

    def __init__(self, predictor: Predictor, *, horizon: float) -> None:
        super().__init__()
        self.horizon = horizon
        self.learning = predictor
        self.mean = deepcopy(predictor).requires_grad_(False)

    @property
    def feature_widths(self) -> tuple[int, ...]:
        return self.mean.feature_widths

    def features(self, x: Tensor, lateral: Features) -> Features:
        return self.mean.features(x, lateral)

    def predictive(self, x: Tensor, lateral: Features = ()) -> Tensor:
        return self.mean.predictive(x, lateral)

    def answer(self, x: Tensor, own: Features | None, lateral: Features) -> Tensor:
        return self.mean.answer(x, own, lateral)

    def log_prob(self, y: Tensor, predictive: Tensor) -> Tensor:
        return self.mean.log_prob(y, predictive)

    def draw(self, predictive: Tensor, generator: torch.Generator) -> Tensor:
        return self.mean.draw(predictive, generator)

    def loss(self, x: Tensor, y: Tensor, lateral: Features) -> Tensor:
        return self.learning.loss(x, y, lateral)

    def admit(self, n_classes: int) -> list[tuple[nn.Parameter, nn.Parameter]]:
        self.mean.admit(n_classes)
        self.mean.requires_grad_(False)
        return self.learning.admit(n_classes)

    @property
    def is_open(self) -> bool:
        return self.learning.is_open

    def see(self, y: Tensor) -> None:
        self.learning.see(y)
        self.mean.see(y)

    def strip(self) -> None:
        self.mean.strip()
        del self.learning

    @torch.no_grad()
    def wake(self) -> None:
        torch._foreach_copy_(*self._pairs())

    @torch.no_grad()
    def stepped(self) -> None:
        torch._foreach_lerp_(*self._pairs(), 1 / self.horizon)

    def _pairs(self) -> tuple[list[Tensor], list[Tensor]]:
        return [*self.mean.parameters()], [*self.learning.parameters()]
