"""The networks of all experts as they answer and learn awake: at once, and in steps that are recorded.

A panel is made for the experts there are. When one comes, goes or changes its shape, another takes its place. It has
lineups: all densities or all predictors, in the order of their birth, asked in two steps, so that the columns' features
of a batch serve both the answers and the learning:

    survey = lineup.survey(x)           # every column's features
    lineup.answers(x, survey)           # (batch, n_experts, ...)
    lineup.lateral(k, survey)           # the features of the columns before column k
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple, cast

import torch
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.experts.neural.lateral import Features
from cndpm.experts.neural.neural_expert import NeuralExpert
from cndpm.experts.neural.parts import Part, Predictor
from cndpm.training.recorded_steps import Routine, StepRecorder

AT_ONCE = 250
"""Samples that networks are asked about at once, which bounds the memory it takes."""


class Seat(NamedTuple):
    """An expert, and whether it is retired: a retired one gives features to later experts and answers no more."""

    expert: NeuralExpert
    retired: bool


class Panel:
    """Experts in the order of birth, those that are retired included; answers come without the retired ones.

    `hypothesis` is the expert that stands for "new"; with `sharing` experts look at the features of earlier ones.
    """

    def __init__(
        self, seats: Sequence[Seat], hypothesis: NeuralExpert, *, sharing: bool, recorder: StepRecorder
    ) -> None:
        self.seats = list(seats)
        self.answering = [position for position, seat in enumerate(seats) if not seat.retired]
        self._hypothesis = hypothesis
        self._sharing = sharing
        self._recorder = recorder
        self._routines: dict[tuple[str | int, ...], Routine] = {}
        self._lineups: list[Lineup] | None = None
        self._lesson = object()  # stands for the experts' present parameters

    @property
    def lineups(self) -> list[Lineup]:
        """The densities and the predictors that answer; lined up when they are first asked."""
        if self._lineups is None:
            self._lineups = self._line_up() if self.answering else []
        return self._lineups

    def _line_up(self) -> list[Lineup]:
        retired = [seat.retired for seat in self.seats]
        densities = [seat.expert.density for seat in self.seats]
        predictors = [seat.expert.predictor for seat in self.seats if seat.expert.predictor is not None]
        return [Lineup(parts, retired, sharing=self._sharing) for parts in (densities, predictors) if parts]

    # Answers. Labels lie where the networks are.

    def evidence(self, samples: Samples, y: Tensor | None) -> tuple[Tensor, Tensor]:
        """Returns log p(x, y | k), (B, K), and log p(x, y | new), (B,), on the host."""
        if not self.answering:
            return torch.zeros(len(samples), 0), self._new(samples.x, y)
        values, *features = self._routine("evaluate", make=lambda: self._evaluate)(*_given(samples.x, y))
        log_joint = values.to("cpu")
        for part, lineup in enumerate(self.lineups):
            survey, features = tuple(features[: lineup.n_shared]), features[lineup.n_shared :]
            samples.derive(f"survey {part}", self._lesson, lambda _, survey=survey: survey)  # type: ignore[misc]
        if self._recorder.enabled:
            return log_joint[:, :-1], log_joint[:, -1]
        return log_joint, self._new(samples.x, y)

    def _new(self, x: Tensor, y: Tensor | None) -> Tensor:
        return self._hypothesis.log_joint(x, y, ((), ())).to("cpu")

    def answers(self, part: int, samples: Samples) -> Tensor:
        """Returns log p(x | k), (B, K), of part 0, densities, or p(y | x, k), (B, K, ...), of part 1, predictors."""
        return self.lineups[part].answers(samples.x, self._survey(part, samples))

    def answer_of(self, position: int, predictor: Predictor, samples: Samples) -> Tensor:
        """Returns p(y | x, k) of the predictor of one position, (B, ...); the others give features at most."""
        ask = self._routine("ask", position, make=lambda: lambda x, *lateral: (predictor.predictive(x, lateral),))
        return ask(samples.x, *self.lineups[1].lateral(position, self._survey(1, samples)))[0]

    def offered(self, x: Tensor) -> tuple[Features, Features]:
        """Returns all experts' features of a memory (M, ...), for the density and the predictor of one more expert."""
        offered = [self._offered(lineup, x) for lineup in self.lineups]
        return (offered[0] if offered else (), offered[1] if len(offered) > 1 else ())

    def _offered(self, lineup: Lineup, x: Tensor) -> Features:
        whole: Features = ()
        for start in range(0, len(x), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            features = lineup.lateral(len(self.seats), lineup.survey(x[part]))
            # Into their place: parts that are joined at the end would lie there twice.
            whole = whole or tuple(feature.new_empty(len(x), *feature.shape[1:]) for feature in features)
            for target, feature in zip(whole, features, strict=True):
                target[part] = feature
        return whole

    def best_of(self, x: Tensor) -> int:
        """Returns the answering expert whose density explains samples (M, ...) best."""
        parts = [self.answers(0, Samples(part)) for part in torch.split(x, AT_ONCE)]
        return int(torch.cat(parts).mean(dim=0).argmax())

    # Learning

    def teach(self, position: int, samples: Samples, y: Tensor | None, weight: Tensor) -> None:
        """Takes one step of the expert at a position; `weight` (B,) is that of each sample's loss."""
        offered = [lineup.lateral(position, self._survey(part, samples)) for part, lineup in enumerate(self.lineups)]
        features = [feature for of_part in offered for feature in of_part]
        labelled = y is not None
        update = self._routine("update", position, labelled, make=lambda: self._update(position, labelled), draws=True)
        update(samples.x, weight, *_given(y), *features)
        self._lesson = object()

    def dissolve(self) -> None:
        """Drops all recorded steps at once: the next panel needs their memory."""
        self._routines.clear()

    # Inside

    def _routine(
        self, *key: str | int, make: Callable[[], Callable[..., tuple[Tensor, ...] | None]], draws: bool = False
    ) -> Routine:
        """Returns the routine of this name; `make` gives its function on first use."""
        if key not in self._routines:
            self._routines[key] = self._recorder.routine(make(), draws=draws)
        return self._routines[key]

    def _survey(self, part: int, samples: Samples) -> Features:
        """Returns all columns' features of whole samples; they are kept until something has been learned."""
        if not self.lineups[part].n_shared:
            return ()
        survey = self._routine("survey", part, make=lambda: self.lineups[part].survey)
        return samples.derive(f"survey {part}", self._lesson, lambda whole: survey(whole.x))

    def _evaluate(self, x: Tensor, y: Tensor | None = None) -> tuple[Tensor, ...]:
        """Returns log p(x, y | k), (batch, K), and all columns' features of x, which are needed next.

        Where steps are recorded, log p(x, y | new) is one column more, so that one recording holds both.
        """
        hypothesis = self._hypothesis if self._recorder.enabled else None
        survey, of_y = self.lineups[0].survey(x), self._evaluate_predictors(x, y, hypothesis)
        of_x = [self.lineups[0].answers(x, survey), *([hypothesis.density.log_prob(x)] if hypothesis else [])]
        values = [px + py for px, py in zip(of_x, of_y[0], strict=True)] if of_y[0] else of_x
        return torch.cat([values[0], *(new.unsqueeze(1) for new in values[1:])], dim=1), *survey, *of_y[1]

    def _evaluate_predictors(
        self, x: Tensor, y: Tensor | None, hypothesis: NeuralExpert | None
    ) -> tuple[list[Tensor], Features]:
        if len(self.lineups) < 2:
            return [], ()
        lineup = self.lineups[1]
        survey = lineup.survey(x)
        if y is None:
            return [], survey
        values = [lineup.scores(y, lineup.answers(x, survey))]
        if hypothesis is not None and hypothesis.predictor is not None:
            values.append(hypothesis.predictor.log_prob(y, hypothesis.predictor.predictive(x)))
        return values, survey

    def _update(self, position: int, labelled: bool) -> Callable[..., None]:
        """Returns the step of :meth:`teach` as a function of tensors alone."""
        expert = self.seats[position].expert
        n_of_density = self.lineups[0].n_shared if position else 0

        def update(x: Tensor, weight: Tensor, *others: Tensor) -> None:
            y, features = (others[0], others[1:]) if labelled else (None, others)
            expert.learn_density(x, weight, features[:n_of_density], self._recorder.generator)
            expert.learn_predictor(x, y, weight, features[n_of_density:])

        return update


def _given(*tensors: Tensor | None) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor is not None]


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
