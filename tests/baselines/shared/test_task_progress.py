"""Classes and tasks met so far, and the distillation of earlier answers."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from cndpm.baselines.shared.task_progress import TaskProgress, distillation, only
from cndpm.learner import Footprint

CPU = torch.device("cpu")


def test_distillation_is_the_softened_cross_entropy_times_the_squared_temperature():
    student, teacher = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    target = torch.exp(teacher / 2.5) / torch.exp(teacher / 2.5).sum(1, keepdim=True)
    log_student = torch.log(torch.exp(student / 2.5) / torch.exp(student / 2.5).sum(1, keepdim=True))
    expected = -(2.5**2) * sum((target[b] * log_student[b]).sum() for b in range(3)) / 3
    torch.testing.assert_close(distillation(student, teacher, temperature=2.5), expected)


def test_distillation_gives_classes_unknown_to_the_teacher_no_probability():
    student, teacher = torch.zeros(1, 3, requires_grad=True), torch.tensor([[1.0, -1.0, float("-inf")]])
    loss = distillation(student, teacher, temperature=2.0)
    target = F.softmax(torch.tensor([0.5, -0.5]), dim=0)
    expected = -4 * (target * torch.log(torch.tensor([1 / 3, 1 / 3]))).sum()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    (gradient,) = torch.autograd.grad(loss, student)
    assert gradient[0, 2] > 0  # descending lowers the unknown class


def test_distillation_is_finite_where_the_student_has_not_seen_a_class_either():
    hidden = torch.tensor([[1.0, float("-inf")]])
    assert torch.isfinite(distillation(hidden, hidden, temperature=2.0))


def test_seen_classes_hide_the_others_once_there_is_one():
    progress = TaskProgress(3, CPU)
    logits = torch.zeros(1, 3)
    assert torch.equal(only(logits, progress.seen), logits)
    progress.see(torch.tensor([2, 2]))
    assert only(logits, progress.seen)[0].tolist() == [float("-inf"), float("-inf"), 0.0]
    assert torch.equal(only(logits, progress.known), logits)


def test_what_has_been_seen_is_known_when_the_task_ends_and_not_before():
    progress = TaskProgress(3, CPU)
    progress.see(torch.tensor([2]))
    assert not progress.known.any()
    progress.end()
    progress.see(torch.tensor([0]))
    assert progress.known.tolist() == [False, False, True]
    assert progress.seen.tolist() == [True, False, True]


def test_the_present_weighs_one_in_t_and_a_half_where_nobody_counted():
    progress = TaskProgress(3, CPU)
    shares = [progress.share_of_present]
    for task in range(1, 4):
        progress.begin(task)
        shares.append(progress.share_of_present)
    assert shares == [1 / 2, 1 / 2, 1 / 3, 1 / 4]


def test_known_classes_come_in_turn():
    progress = TaskProgress(4, CPU)
    progress.see(torch.tensor([1, 3]))
    progress.end()
    assert progress.known_in_turn(5).tolist() == [1, 3, 1, 3, 1]
    progress.known[1] = False
    assert progress.known_in_turn(3).tolist() == [3, 3, 3]
    assert progress.footprint() == Footprint(0, 8)
