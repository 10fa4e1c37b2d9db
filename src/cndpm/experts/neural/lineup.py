"""One kind of part of all experts, all densities or all predictors, in the order of their birth.

A lineup is asked in two steps, so that the columns' features of a batch serve both the answers and the learning:

    survey = lineup.survey(x)           # every column's features
    lineup.answers(x, survey)           # (batch, n_experts, ...)
    lineup.lateral(k, survey)           # the features of the columns before column k
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import cast

import torch
from torch import Tensor

from cndpm.experts.neural.lateral import Features
from cndpm.experts.neural.parts import Part, Predictor


class Lineup:
    """Parts of all experts. Columns of retired experts are numbered too; answers come without retired experts."""

    def __init__(self, parts: Sequence[Part], retired: Sequence[bool], *, sharing: bool) -> None:
        self.parts, self.retired, self.sharing = parts, retired, sharing
        self.ends = [list(accumulate(widths)) for widths in zip(*(part.feature_widths for part in parts), strict=True)]

    @property
    def n_shared(self) -> int:
        """Layers whose features are shared: the length of a survey."""
        return len(self.ends) if self.sharing else 0

    @torch.no_grad()
    def survey(self, x: Tensor) -> Features:
        """Returns all columns' features of x (batch, ...), joined layer by layer; empty where nothing is shared."""
        joined: Features = ()
        for k, part in enumerate(self.parts if self.sharing else []):
            own = part.features(x, self.lateral(k, joined))
            if not joined:
                joined = tuple(
                    f.new_empty(len(x), ends[-1], *f.shape[2:]) for f, ends in zip(own, self.ends, strict=True)
                )
            for feature, whole in zip(own, self._own(k, joined), strict=True):
                whole.copy_(feature)
        return joined

    def lateral(self, k: int, survey: Features) -> Features:
        """Returns the features of all columns before column k."""
        if k == 0 or not self.sharing:
            return ()
        return tuple(feature[:, : ends[k - 1]] for feature, ends in zip(survey, self.ends, strict=True))

    def answers(self, x: Tensor, survey: Features) -> Tensor:
        """Returns every expert's answer, (batch, n_experts, ...), given the result of :meth:`survey` of x."""
        answers = [
            part.answer(x, self._own(k, survey) if survey else None, self.lateral(k, survey))
            for k, (part, gone) in enumerate(zip(self.parts, self.retired, strict=True))
            if not gone
        ]
        return torch.stack(answers, dim=1)

    def scores(self, y: Tensor, answers: Tensor) -> Tensor:
        """Returns log p(y | x, k) as routing sees it, (batch, n_experts), given the predictors' :meth:`answers`."""
        predictors = [cast(Predictor, part) for part, gone in zip(self.parts, self.retired, strict=True) if not gone]
        each = zip(predictors, answers.unbind(dim=1), strict=True)
        return torch.stack([predictor.log_prob(y, own) for predictor, own in each], dim=1)

    def _own(self, k: int, survey: Features) -> Features:
        """Returns the features of column k itself, views into those of all columns."""
        starts = [ends[k - 1] if k else 0 for ends in self.ends]
        return tuple(f[:, start : ends[k]] for f, start, ends in zip(survey, starts, self.ends, strict=True))
