"""Students that know one class each."""

from __future__ import annotations

import copy
import math

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, batch, weights_of

from cndpm.baselines.pec import PEC

SMALL = {"teacher_hidden": 7, "outputs": 3}


def make_learner() -> PEC:
    return PEC(PEC.Settings(hidden=16, teacher_hidden=32, outputs=20), input_shape=(6,), n_classes=3)


def test_a_student_steps_towards_the_teacher_on_its_classs_samples_with_a_falling_rate():
    settings = PEC.Settings(**{**PLAIN, **SMALL, "learning_rate": 0.05, "steady_steps": 2})
    learner = PEC(settings, input_shape=(5,), n_classes=4)
    teacher = copy.deepcopy(learner.teacher.network)
    for step in range(3):
        x, y = batch(9, step, (0, 3))
        expected = []
        for label, student in enumerate(learner.students[:3]):
            mine = x[y == label]
            loss = (student.network(mine) - teacher(mine)).square().sum(1).mean()
            expected.append(after_step(student.network, loss, 0.05 / math.sqrt(1 + step / 2)))
        absent = weights_of(learner.students[3].network)
        learner.learn(x, y)
        for student, weights in zip(learner.students, [*expected, absent], strict=True):
            torch.testing.assert_close(weights_of(student.network), weights)
    assert torch.equal(weights_of(learner.teacher.network), weights_of(teacher))
    assert [student.n_steps for student in learner.students] == [3, 3, 3, 0]


def test_answers_follow_the_squared_errors_of_the_students_that_have_learned():
    learner = PEC(PEC.Settings(**{**PLAIN, **SMALL}), input_shape=(5,), n_classes=4)
    x, y = batch(9, 0, (0, 3))
    torch.testing.assert_close(learner.predict_log_proba(x).exp().sum(1), torch.ones(9))
    learner.learn(x, y)
    with torch.no_grad():
        errors = [(student.network(x) - learner.teacher.network(x)).square().sum(1) for student in learner.students[:3]]
    answers = learner.predict_log_proba(x)
    torch.testing.assert_close(answers[:, :3], F.log_softmax(-torch.stack(errors, dim=1), dim=1))
    assert torch.isneginf(answers[:, 3]).all()


def test_a_class_leaves_the_other_classes_students_as_they_are():
    learner = make_learner()
    x = torch.rand(8, 6, generator=torch.Generator().manual_seed(0))
    before = [student.trainer.weights() for student in learner.students]
    learner.learn(x, torch.ones(8, dtype=torch.int64))
    same = [torch.equal(b, s.trainer.weights()) for b, s in zip(before, learner.students, strict=True)]
    assert same == [True, False, True]


def test_classes_learned_one_after_another_are_told_apart():
    generator = torch.Generator().manual_seed(0)
    means = 2 * torch.randn(3, 6, generator=generator)
    learner = make_learner()
    for label in range(3):
        for _ in range(150):
            x = means[label] + 0.5 * torch.randn(5, 6, generator=generator)
            learner.learn(x, torch.full((5,), label))
    y = torch.arange(300) % 3
    x = means[y] + 0.5 * torch.randn(300, 6, generator=generator)
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() > 0.95


def test_a_footprint_counts_the_students_as_experts_and_the_teacher_as_kept():
    learner = PEC(PEC.Settings(**{**PLAIN, **SMALL}), input_shape=(5,), n_classes=4)
    student, teacher = 5 * 6 + 6 + 6 * 3 + 3, 5 * 7 + 7 + 7 * 3 + 3
    kept = learner.footprint()
    assert (kept.n_parameters, kept.n_numbers_kept, kept.n_experts) == (4 * student, 4 * student + teacher, 4)
