"""Learning without forgetting: the step on labels and on the previous network's softened answers."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, batch, weights_of
from torch import Tensor, nn

from cndpm.baselines.lwf import LwF

T = 1.7


def loss_by_hand(network: nn.Module, teacher: nn.Module, x: Tensor, y: Tensor, *, seen: int, known: int, share: float):
    """The weighted sum of both terms, where classes 0 to seen - 1 have been met and the first `known` before."""
    logits, answers = network(x)[:, :seen], teacher(x)[:, :known].detach()
    soft, log_soft = F.softmax(answers / T, dim=1), F.log_softmax(logits / T, dim=1)[:, :known]
    return share * F.cross_entropy(logits, y) - (1 - share) * T**2 * (soft * log_soft).sum(1).mean()


def test_in_task_t_labels_weigh_one_in_t_and_the_previous_networks_answers_the_rest():
    learner = LwF(LwF.Settings(temperature=T, **PLAIN), input_shape=(5,), n_classes=8)
    teacher = learner.network
    for task, share in enumerate((1.0, 1 / 2, 1 / 3)):
        learner.begin_task(task)
        known = 2 * task
        for seed in range(2):
            x, y = batch(6, 10 * task + seed, (known, known + 2))
            if task == 0:
                loss = F.cross_entropy(learner.network(x)[:, :2], y)
            else:
                loss = loss_by_hand(learner.network, teacher, x, y, seen=known + 2, known=known, share=share)
            expected = after_step(learner.network, loss)
            learner.learn(x, y)
            torch.testing.assert_close(weights_of(learner.network), expected)
        learner.end_task()
        teacher = copy.deepcopy(learner.network)


def test_answers_are_the_softmax_over_the_classes_seen():
    learner = LwF(LwF.Settings(**PLAIN), input_shape=(5,), n_classes=4)
    x, y = batch(6, 0, (0, 2))
    learner.learn(x, y)
    answers = learner.predict_log_proba(x)
    with torch.no_grad():
        torch.testing.assert_close(answers[:, :2], F.log_softmax(learner.network(x)[:, :2], dim=1))
    assert torch.isneginf(answers[:, 2:]).all()
    assert not learner.network.training  # batch normalisation answers by what it remembers
