"""Lessons on a memory: how long, on which rows, and what is kept of them."""

from dataclasses import asdict

import pytest
import torch

from cndpm.experts.neural.lesson import Lesson, LessonSchedule
from cndpm.training.optimiser import Optimiser
from cndpm.training.recorded_steps import StepRecorder


class Teaching:
    """A lesson of one weight; notes the rows of every step, and how far held-out losses are told to be."""

    def __init__(self, schedule: LessonSchedule, *, held_out_losses: tuple[float, ...] = (), n_rows: int = 40) -> None:
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.rows: list[torch.Tensor] = []
        self.looks: list[float] = []
        self._told = list(held_out_losses)
        optimiser = Optimiser([self.weight], lr=0.1, clip=1.0, weight_decay=0.0)
        recorder = StepRecorder(torch.device("cpu"), torch.Generator().manual_seed(0))
        self.lesson = Lesson(self.loss, self.held_out_loss, optimiser, schedule, n_rows=n_rows, recorder=recorder)

    def loss(self, rows: torch.Tensor) -> torch.Tensor:
        self.rows.append(rows)
        return (self.weight - 100.0).expand(len(rows))

    def held_out_loss(self, rows: torch.Tensor) -> torch.Tensor:
        self.looks.append(float(self.weight.detach()))
        return torch.full((len(rows),), self._told.pop(0) if self._told else 1.0)


def test_the_usual_schedule():
    usual = LessonSchedule(max_steps=1)
    expected = {"batch_size": 50, "until": "steps", "check_every": 100, "patience": 5, "holdout": 0.1}
    assert asdict(usual) == {"max_steps": 1, **expected}


def test_a_lesson_takes_exactly_as_many_steps_as_asked_of_all_rows():
    teaching = Teaching(LessonSchedule(max_steps=7, batch_size=30))
    assert (teaching.lesson.advance(6), teaching.lesson.advance(100), teaching.lesson.is_over) == (6, 1, True)
    assert [len(rows) for rows in teaching.rows] == [30] * 7
    assert torch.cat(teaching.rows).unique().tolist() == list(range(40))


def test_held_out_rows_are_never_learned_and_the_lesson_ends_with_the_best_weights():
    """Looks get better twice, then five times worse, with one better look between that begins the count anew."""
    losses = (3.0, 2.0, 2.5, 2.5, 1.0, 1.5, 1.5, 1.5, 1.5, 1.5, 0.5)
    schedule = LessonSchedule(max_steps=10_000, until="converged", check_every=3, batch_size=20, holdout=0.25)
    teaching = Teaching(schedule, held_out_losses=losses)
    lesson = teaching.lesson
    held_out = set(lesson.held_out.tolist())
    assert len(held_out) == 10
    assert lesson.advance(10_000) == 30  # ten looks, three steps each
    assert not held_out & set(torch.cat(teaching.rows).tolist())
    assert set(torch.cat(teaching.rows).tolist()) == set(range(40)) - held_out
    assert float(teaching.weight.detach()) == pytest.approx(teaching.looks[4])
