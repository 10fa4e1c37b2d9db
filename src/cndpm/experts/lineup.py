"""One kind of part of all experts, all densities or all predictors, in the order of their birth.

A lineup is asked in two steps, so that what the columns compute of a batch serves both the answers and the learning:

    survey = lineup.survey(x)           # every column's features
    lineup.answers(x, survey)           # (batch, n_experts, ...)
    lineup.lateral(k, survey)           # what column k is offered by the earlier ones
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from cndpm.experts.lateral import Features, join
from cndpm.experts.parts import Part, Predictor

__all__ = ["Lineup", "LoopedLineup"]


class Lineup(ABC):
    """Answers of all experts. Columns are numbered with those of retired experts, answers come without them."""

    @abstractmethod
    def survey(self, x: Tensor, *, beyond: bool = False) -> Any:
        """What the columns compute of x (batch, ...); with `beyond`, as far as a column after the last one needs it."""

    @abstractmethod
    def lateral(self, k: int, survey: Any) -> Features:
        """The features of all columns before column k."""

    @abstractmethod
    def answers(self, x: Tensor, survey: Any) -> Tensor:
        """(batch, n_experts, ...)."""

    @abstractmethod
    def scores(self, y: Tensor, answers: Tensor) -> Tensor:
        """log p(y | x, k) as routing sees it, (batch, n_experts), of predictors that gave these answers."""

    @abstractmethod
    def refresh(self, k: int) -> None:
        """To be told when the part of column k has learned."""


class LoopedLineup(Lineup):
    """Parts of any kind, asked one after the other.

    Args:
        parts: In the order of birth.
        retired: Which of them answer no more.
        sharing: Whether later parts look at earlier ones.
        ask: The answer of one part to x, given what earlier parts offer.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        retired: Sequence[bool],
        *,
        sharing: bool,
        ask: Callable[[Any, Tensor, Features], Tensor],
    ) -> None:
        self.parts, self.retired, self.sharing, self.ask = parts, retired, sharing, ask

    @torch.no_grad()
    def survey(self, x: Tensor, *, beyond: bool = False) -> list[Features]:
        laterals: list[Features] = [()]
        for part in self.parts if beyond else self.parts[:-1]:
            laterals.append(join(laterals[-1], part.features(x, laterals[-1])) if self.sharing else ())
        return laterals

    def lateral(self, k: int, survey: list[Features]) -> Features:
        return survey[k]

    def answers(self, x: Tensor, survey: list[Features]) -> Tensor:
        asked = zip(self.parts, survey, self.retired, strict=False)
        return torch.stack([self.ask(part, x, lateral) for part, lateral, gone in asked if not gone], dim=1)

    def scores(self, y: Tensor, answers: Tensor) -> Tensor:
        predictors = [cast(Predictor, part) for part, gone in zip(self.parts, self.retired, strict=True) if not gone]
        each = zip(predictors, answers.unbind(dim=1), strict=True)
        return torch.stack([predictor.log_prob(y, own) for predictor, own in each], dim=1)

    def refresh(self, k: int) -> None:
        """Nothing is kept that could be stale."""
