"""One neural expert: a density and a predictor, each with its optimiser; and the one in training, with its lessons."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cndpm.experts.neural.lateral import Features
from cndpm.experts.neural.lesson import Lesson, LessonSchedule
from cndpm.experts.neural.parts import Density, Part, Predictor
from cndpm.state import State
from cndpm.training.optimiser import Optimiser
from cndpm.training.recorded_steps import StepRecorder


@dataclass(frozen=True)
class PartTraining:
    """Optimiser and schedule of the densities, or of the predictors, of all experts."""

    lr: float  # learning rate of Adam
    sleep: LessonSchedule
    wake_lr_factor: float = 1.0  # multiplies the learning rate when the expert wakes
    clip: float = 0.5  # gradients are clipped by value
    weight_decay: float = 1e-5  # squared-norm penalty while asleep
    slowdown: int | None = None  # the learning rate falls as 1 / sqrt(1 + steps / this), anew when the expert wakes

    def optimiser(self, part: Part) -> Optimiser:
        """Makes a fresh optimiser of the part's parameters."""
        return Optimiser(
            [parameter for parameter in part.parameters() if parameter.requires_grad],
            lr=self.lr,
            clip=self.clip,
            weight_decay=self.weight_decay,
            slowdown=self.slowdown,
        )


class NeuralExpert:
    """p(x, y | k) by networks; without a predictor in an unlabelled mixture."""

    def __init__(self, density: Density, predictor: Predictor | None, *training: PartTraining) -> None:
        self.density, self.predictor, self.training = density, predictor, training
        self._optimisers = self._made_optimisers()

    def _made_optimisers(self) -> list[Optimiser]:
        return [training.optimiser(part) for part, training in zip(self._networks, self.training, strict=False)]

    @property
    def _networks(self) -> list[Part]:
        return [self.density] if self.predictor is None else [self.density, self.predictor]

    @property
    def parts(self) -> list[tuple[Part, Optimiser]]:
        """The networks with their optimisers."""
        return list(zip(self._networks, self._optimisers, strict=True))

    @property
    def n_parameters(self) -> int:
        """Trained numbers."""
        return sum(p.numel() for part, _ in self.parts for p in part.parameters())

    def log_joint(self, x: Tensor, y: Tensor | None, lateral: tuple[Features, Features]) -> Tensor:
        """Returns log p(x, y | k) as routing sees it, (batch,), or log p(x | k) without y.

        `lateral` are the features of earlier experts for the density and for the predictor; empty tuples for the first.
        """
        log_joint = self.density.log_prob(x, lateral[0])
        if self.predictor is None or y is None:
            return log_joint
        return log_joint + self.predictor.log_prob(y, self.predictor.predictive(x, lateral[1]))

    def admit(self, n_classes: int) -> None:
        """Makes room for classes below `n_classes`."""
        for old, new in [] if self.predictor is None else self.predictor.admit(n_classes):
            self._optimisers[1].replace(old, new)

    # Steps on the weighted sum of the losses (line 19 of Algorithm 1). They never wait for the device, so that they can
    # be recorded.

    def learn_density(self, x: Tensor, weight: Tensor, lateral: Features, generator: torch.Generator) -> None:
        """Takes one step of the density; `weight` (batch,) is that of each sample's loss."""
        loss = (weight * self.density.loss(x, lateral, generator)).sum()
        self._optimisers[0].step(loss, penalise=False)
        self.density.stepped()

    def learn_predictor(self, x: Tensor, y: Tensor | None, weight: Tensor, lateral: Features) -> None:
        """Takes one step of the predictor, where there is one and something to predict; `weight` is (batch,)."""
        if self.predictor is not None and y is not None:
            loss = (weight * self.predictor.loss(x, y, lateral)).sum()
            self._optimisers[1].step(loss, penalise=False)
            self.predictor.stepped()

    def lessons(
        self, x: Tensor, y: Tensor | None, lateral: tuple[Features, Features], recorder: StepRecorder
    ) -> list[Lesson]:
        """Makes the lessons of the predictor and of the density on a memory, x (M, ...) and its targets."""

        def rows_of(features: Features, rows: Tensor) -> Features:
            return tuple(feature[rows] for feature in features)

        density, predictor = self.density, self.predictor
        lessons = []
        if predictor is not None and y is not None:
            predictor.see(y)

            def loss(rows: Tensor) -> Tensor:
                return predictor.loss(x[rows], y[rows], rows_of(lateral[1], rows))

            lessons.append(Lesson(loss, loss, self._optimisers[1], self.training[1].sleep, len(x), recorder))
        lessons.append(
            Lesson(
                lambda rows: density.loss(x[rows], rows_of(lateral[0], rows), recorder.generator),
                lambda rows: -density.log_prob(x[rows], rows_of(lateral[0], rows)),
                self._optimisers[0],
                self.training[0].sleep,
                len(x),
                recorder,
            )
        )
        return lessons

    def wake(self) -> None:
        """Prepares the parts for answers and scales the learning rates for learning awake."""
        for (part, optimiser), training in zip(self.parts, self.training, strict=False):
            part.wake()
            optimiser.scale_lr(training.wake_lr_factor)
            if training.slowdown is not None:
                optimiser.restart()

    def retire(self) -> None:
        """Drops all parameters but those that later experts look at."""
        for part in self._networks:
            part.strip()
            part.requires_grad_(False)
        self._optimisers = self._made_optimisers()

    def state_dict(self) -> State:
        """Returns parameters, buffers and optimisers."""
        return {
            "parts": [{name: value.clone() for name, value in part.state_dict().items()} for part, _ in self.parts],
            "optimisers": [optimiser.state_dict() for _, optimiser in self.parts],
        }

    def load_state_dict(self, state: State) -> None:
        for (part, optimiser), weights, moments in zip(self.parts, state["parts"], state["optimisers"], strict=True):
            part.load_state_dict(weights)
            optimiser.load_state_dict(moments)


class ExpertInTraining:
    """One expert and the lessons it takes on a memory, x (M, ...) and its targets, one after the other."""

    def __init__(self, expert: NeuralExpert, x: Tensor, y: Tensor | None, lessons: list[Lesson]) -> None:
        self.expert, self.x, self.y, self.lessons = expert, x, y, lessons

    def advance(self, max_steps: int) -> bool:
        """Takes up to `max_steps` steps; returns whether all lessons are over."""
        for lesson in self.lessons:
            max_steps -= lesson.advance(max_steps)
        return all(lesson.is_over for lesson in self.lessons)

    def progress(self) -> float:
        """Returns the part of the largest number of steps that is done, 0 to 1."""
        total = sum(lesson.schedule.max_steps for lesson in self.lessons)
        done = sum(lesson.schedule.max_steps if lesson.is_over else lesson.step for lesson in self.lessons)
        return done / total if total else 1.0

    def state_dict(self) -> State:
        """Returns the expert, its memory and the progress of its lessons."""
        return {
            "expert": self.expert.state_dict(),
            "lessons": [lesson.state_dict() for lesson in self.lessons],
            "x": self.x.clone(),
            "y": self.y.clone() if self.y is not None else None,
        }
