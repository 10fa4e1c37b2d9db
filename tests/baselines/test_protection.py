"""Learners that guard earlier tasks do guard them: the same learner without its guard forgets."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cndpm.experiments.learners import learner_class
from cndpm.learner import TaskBasedLearner

PLAIN = {"hidden": 16, "optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0, "clip_value": None}


def domain(task: int, n: int = 200) -> tuple[Tensor, Tensor]:
    """Two classes divided along one direction, the other way round in the second task, which another input marks."""
    generator = torch.Generator().manual_seed(task)
    x = 0.3 * torch.randn(n, 3, generator=generator)
    y = torch.arange(n) % 2
    x[:, task] += 1.0
    x[:, 2] += 2.0 * y - 1.0
    return x, y if task == 0 else 1 - y


def loss_of_first_task_before_and_after(name: str, **settings: float) -> tuple[float, float]:
    """Mean losses of the first task's samples when it has ended, and when the second has."""
    cls = learner_class(name)
    learner = cls(cls.Settings(**PLAIN, **settings), input_shape=(3,), n_classes=2)
    assert isinstance(learner, TaskBasedLearner)
    (x, y), losses = domain(0), []
    for task in range(2):
        learner.begin_task(task)
        for rows in torch.arange(200).split(20) * 10:
            learner.learn(*(part[rows] for part in domain(task)))
        learner.end_task()
        losses.append(-learner.predict_log_proba(x).gather(1, y[:, None]).mean().item())
    return losses[0], losses[1]


@pytest.mark.parametrize(("name", "strength"), [("ewc", 300.0), ("online-ewc", 300.0), ("si", 10.0), ("mas", 0.3)])
def test_the_penalty_guards_the_first_task_which_is_forgotten_without_it(name: str, strength: float):
    before, guarded = loss_of_first_task_before_and_after(name, strength=strength)
    _, forgotten = loss_of_first_task_before_and_after(name, strength=0.0)
    assert forgotten - before > 2
    assert guarded - before < 0.6 * (forgotten - before)
