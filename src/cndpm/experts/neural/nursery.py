"""The expert in training, with its memory and its lessons."""

from __future__ import annotations

from torch import Tensor

from cndpm.experts.neural.lesson import Lesson
from cndpm.experts.neural.neural_expert import NeuralExpert
from cndpm.state import State


class Nursery:
    """One expert and the lessons it takes on a memory, x (M, ...) and its targets, one after the other."""

    def __init__(self, expert: NeuralExpert, x: Tensor, y: Tensor | None, lessons: list[Lesson]) -> None:
        self.expert, self.x, self.y, self.lessons = expert, x, y, lessons

    def advance(self, max_steps: int) -> bool:
        """Takes up to `max_steps` steps; returns whether all lessons are over."""
        for lesson in self.lessons:
            max_steps -= lesson.advance(max_steps)
        if not all(lesson.is_over for lesson in self.lessons):
            return False
        self._join()
        return True

    def progress(self) -> float:
        """Returns the part of the largest number of steps that is done, 0 to 1."""
        total = sum(lesson.schedule.max_steps for lesson in self.lessons)
        done = sum(lesson.schedule.max_steps if lesson.is_over else lesson.step for lesson in self.lessons)
        return done / total if total else 1.0

    def state_dict(self) -> State:
        """Returns the expert, its memory and the progress of its lessons."""
        self._join()
        return {
            "expert": self.expert.state_dict(),
            "lessons": [lesson.state_dict() for lesson in self.lessons],
            "x": self.x.clone(),
            "y": self.y.clone() if self.y is not None else None,
        }

    def _join(self) -> None:
        """Makes later work wait for lessons that run beside others."""
        for lesson in self.lessons:
            lesson.recorder.join()

    def load_progress(self, state: State) -> None:
        """Restores the progress of the lessons; expert and memory have been restored before."""
        for lesson, progress in zip(self.lessons, state["lessons"], strict=True):
            lesson.load_state_dict(progress)
