"""Predictors of y: a classifier of classes that are discovered, a Gaussian regressor, and running means of either."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from cndpm.experts.neural.lateral import Column, Features, LateralMLP
from cndpm.experts.neural.parts import Predictor


class _LateralPredictor(Predictor):
    """A column, by default of fully connected layers, and a linear head on top of all columns up to it.

    `trunk` is a column in place of the fully connected one that `hidden` and `lateral_widths` describe.
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        n_outputs: int,
        *,
        hidden: Sequence[int] = (64, 64),
        lateral_widths: Sequence[int] = (),
        temperature: float = 1.0,
        trunk: Column | None = None,
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.trunk = LateralMLP(math.prod(input_shape), hidden, lateral_widths) if trunk is None else trunk
        self.head = nn.Linear(self.trunk.out_features, n_outputs)

    @property
    def feature_widths(self) -> tuple[int, ...]:
        return self.trunk.widths

    def features(self, x: Tensor, lateral: Features) -> Features:
        return self.trunk(x, lateral)  # type: ignore[no-any-return]

    def strip(self) -> None:
        del self.head

    def predictive(self, x: Tensor, lateral: Features = ()) -> Tensor:
        return self.answer(x, None, lateral)

    def answer(self, x: Tensor, own: Features | None, lateral: Features) -> Tensor:
        return self._predictive_of(self.output(x, lateral, own))

    def output(self, x: Tensor, lateral: Features, own: Features | None = None) -> Tensor:
        """Returns the head's raw output, (batch, n_outputs)."""
        own = self.features(x, lateral) if own is None else own
        return self.head(self.trunk.top(own, lateral))  # type: ignore[no-any-return]

    @abstractmethod
    def _predictive_of(self, output: Tensor) -> Tensor:
        """Returns the prediction from the head's raw output, (batch, n_outputs)."""


class Classifier(_LateralPredictor):
    r"""Softmax over the classes this expert has seen; the others share a small probability.

    .. math::
        p(y \mid x, k) = \begin{cases} (1 - \epsilon)\, \mathrm{softmax}(f_k(x))_y & y \in S_k \\
        \epsilon / |\bar S_k| & y \in \bar S_k \end{cases}

    where :math:`\bar S_k` are classes met somewhere but never by this expert. With every class in :math:`S_k`, which is
    so when the classes are given up front (`closed`) as in the paper, it is the plain softmax; with none it is uniform.
    The `temperature` divides the log-probabilities, before a second softmax, in the value that routing sees; the
    gradient stays that of the plain cross entropy.
    """

    seen: Tensor

    def __init__(
        self,
        input_shape: tuple[int, ...],
        n_classes: int,
        *,
        unseen_probability: float = 1e-3,
        closed: bool = False,
        **column: Any,
    ) -> None:
        super().__init__(input_shape, n_classes, **column)
        self.unseen_probability = unseen_probability
        self.closed = closed
        self.register_buffer("seen", torch.full((n_classes,), closed))

    def _predictive_of(self, output: Tensor) -> Tensor:
        return open_log_softmax(output, self.seen, self.unseen_probability)

    def log_prob(self, y: Tensor, predictive: Tensor) -> Tensor:
        return temper(predictive, self.temperature).gather(1, y[:, None])[:, 0]

    def loss(self, x: Tensor, y: Tensor, lateral: Features) -> Tensor:
        # Over the seen classes only. A label outside them teaches this expert nothing.
        logits = self.output(x, lateral).masked_fill(~self.seen, -torch.inf)
        loss = nn.functional.cross_entropy(logits, y, reduction="none")
        return torch.where(self.seen[y], loss, 0.0)

    def draw(self, predictive: Tensor, generator: torch.Generator) -> Tensor:
        return torch.multinomial(predictive.exp(), 1, generator=generator).squeeze(1)

    def admit(self, n_classes: int) -> list[tuple[nn.Parameter, nn.Parameter]]:
        missing = n_classes - len(self.seen)
        if missing <= 0:
            return []
        old = list(self.head.parameters())
        self.head = nn.Linear(self.head.in_features, n_classes, device=self.seen.device)
        enlarged = list(zip(old, self.head.parameters(), strict=True))
        with torch.no_grad():
            for before, new in enlarged:
                new.zero_()[: len(before)] = before
        self.seen = torch.cat([self.seen, self.seen.new_zeros(missing)])
        return enlarged

    @property
    def is_open(self) -> bool:
        return not self.closed

    def see(self, y: Tensor) -> None:
        self.seen[y] = True

    def strip(self) -> None:
        super().strip()
        del self.seen


class Regressor(_LateralPredictor):
    """Gaussian with mean and variance from the network, for targets (batch, n_outputs).

    The temperature T stretches the variance that routing sees to T σ², the Gaussian equivalent of dividing the log
    density by T.
    """

    def __init__(self, input_shape: tuple[int, ...], n_outputs: int, **column: Any) -> None:
        super().__init__(input_shape, 2 * n_outputs, **column)

    def _predictive_of(self, output: Tensor) -> Tensor:
        mean, raw = output.chunk(2, dim=-1)
        return torch.stack([mean, nn.functional.softplus(raw) + 1e-4], dim=-2)

    def log_prob(self, y: Tensor, predictive: Tensor) -> Tensor:
        mean, variance = predictive.unbind(dim=-2)
        return _gaussian_log_prob(y, mean, variance * self.temperature)

    def loss(self, x: Tensor, y: Tensor, lateral: Features) -> Tensor:
        return -_gaussian_log_prob(y, *self.predictive(x, lateral).unbind(dim=1))

    def draw(self, predictive: Tensor, generator: torch.Generator) -> Tensor:
        mean, variance = predictive.unbind(dim=1)
        return mean + variance.sqrt() * torch.randn(mean.shape, generator=generator, device=mean.device)


def open_log_softmax(logits: Tensor, seen: Tensor, unseen_probability: float) -> Tensor:
    """Returns log-probabilities (..., C); classes that were not `seen`, (C,), share ε."""
    n_unseen = (~seen).sum(dim=-1, keepdim=True)
    floor = torch.log(unseen_probability / n_unseen)
    # With no unseen class the mass ε is not set aside; with no seen class the answer is uniform.
    kept = torch.where(n_unseen > 0, math.log1p(-unseen_probability), 0.0)
    log_proba = torch.log_softmax(logits.masked_fill(~seen, -torch.inf), dim=-1) + kept
    uniform = torch.full_like(logits, -math.log(logits.shape[-1]))
    return torch.where(seen.any(dim=-1, keepdim=True), torch.where(seen, log_proba, floor), uniform)


def temper(log_proba: Tensor, temperature: float) -> Tensor:
    """Divides log-probabilities (..., n_classes) by a temperature, which flattens above 1, and normalises again."""
    return log_proba if temperature == 1.0 else torch.log_softmax(log_proba / temperature, dim=-1)


def _gaussian_log_prob(y: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Returns log N(y; mean, variance) summed over targets, (batch,)."""
    return -0.5 * ((y - mean).square() / variance + torch.log(2 * torch.pi * variance)).sum(dim=-1)


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
