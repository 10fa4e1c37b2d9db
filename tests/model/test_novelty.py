"""Levels set by hand, and tasks that are told."""

import torch

from cndpm.experts.bank import Evidence
from cndpm.model.novelty import FixedLevel, TaskLabels


def evidence(n_experts: int, n: int = 2) -> Evidence:
    return Evidence(torch.zeros(n, n_experts, dtype=torch.float64), torch.zeros(n, dtype=torch.float64))


def test_a_level_calls_new_what_lies_below_its_logarithm_of_alpha():
    given = Evidence(torch.tensor([[-4.0], [-6.0]]), torch.zeros(2))
    assert FixedLevel(log_alpha=-5.0).route(given, None).is_new.tolist() == [False, True]


def test_samples_of_a_task_go_to_the_expert_of_that_task():
    labels = TaskLabels()
    for task in (3, 7):
        labels.begin_task(task)
        assert labels.route(evidence(0 if task == 3 else 1), None).is_new.all()
        labels.add_expert(evidence(1, 0), None)
    assert labels.route(evidence(2), None).responsibilities.tolist() == [[0.0, 1.0]] * 2
    labels.begin_task(3)
    routing = labels.route(evidence(2), None)
    assert not routing.is_new.any() and routing.responsibilities.tolist() == [[1.0, 0.0]] * 2


def test_the_end_of_a_task_is_passed_on():
    ends = []
    TaskLabels(at_end=lambda: ends.append("over")).end_task()
    assert ends == ["over"]
