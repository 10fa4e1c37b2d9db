"""Students that know one class each."""

from __future__ import annotations

import torch

from cndpm.baselines.pec import PEC


def make_learner() -> PEC:
    return PEC(PEC.Settings(hidden=16, teacher_hidden=32, outputs=20), input_shape=(6,), n_classes=3)


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
