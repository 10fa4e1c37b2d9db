"""DGR and RtF: dreams stand for data that is gone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cndpm.experiments.learners import learner_class
from cndpm.learner import TaskBasedLearner

PATTERNS = torch.eye(4).repeat_interleave(4, dim=1)  # four classes of sixteen pixels, each with four of them lit


def samples(classes: list[int], n: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.tensor(classes)[torch.randint(len(classes), (n,), generator=generator)]
    return (0.8 * PATTERNS[y] + 0.2 * torch.rand(n, 16, generator=generator)), y


def taught(name: str, *, dreaming: bool, **settings: str) -> TaskBasedLearner:
    """A learner of classes 0 and 1, then of 2 and 3; one that is not told that the first task ended does not dream."""
    cls = learner_class(name)
    chosen = cls.Settings(hidden=32, latent=4, learning_rate=3e-3, **settings)
    learner = cls(chosen, input_shape=(16,), n_classes=4, seed=0)
    assert isinstance(learner, TaskBasedLearner)
    for task, classes in enumerate([[0, 1], [2, 3]]):
        learner.begin_task(task)
        for step in range(60):
            learner.learn(*samples(classes, 32, seed=100 * task + step))
        if dreaming:
            learner.end_task()
    return learner


@pytest.mark.parametrize(("name", "settings"), [("dgr", {}), ("rtf", {}), ("rtf", {"prior": "standard"})])
def test_dreams_keep_the_first_task_which_is_forgotten_without_them(name: str, settings: dict[str, str]):
    x, y = samples([0, 1], 200, seed=999)
    right = {d: taught(name, dreaming=d, **settings).predict_log_proba(x).argmax(1) == y for d in (True, False)}
    assert right[True].double().mean() > 0.95
    assert right[False].double().mean() < 0.5


@pytest.mark.parametrize("name", ["dgr", "rtf"])
def test_a_batch_is_learned_in_as_many_steps_as_asked_for(name: str):
    cls = learner_class(name)
    learner = cls(cls.Settings(hidden=5, latent=2, n_steps=3), input_shape=(16,), n_classes=4)
    for seed in range(2):
        learner.learn(*samples([0, 1], 8, seed=seed))
    moments = learner.state_dict()["trainer"]["moments"]
    assert {int(entry["step"]) for entry in moments.values()} == {6}


@pytest.mark.parametrize("name", ["dgr", "rtf"])
def test_what_a_task_does_not_use_is_left_to_the_next_as_it_was(name: str):
    """The weights of pixels that stay dark and of classes that were not met; a decay under Adam takes them to zero."""
    cls = learner_class(name)
    learner = cls(cls.Settings(hidden=8, latent=2), input_shape=(16,), n_classes=4)
    before = learner.state_dict()["trainer"]["network"]
    for seed in range(20):
        x, y = samples([0, 1], 8, seed=seed)
        learner.learn(x * (torch.arange(16) < 8), y)
    after = learner.state_dict()["trainer"]["network"]
    first = "features.1.0.weight" if name == "dgr" else "encoder.1.0.weight"
    for key, unused in ((first, (slice(None), slice(8, 16))), ("head.weight", slice(2, 4))):
        assert torch.equal(after[key][unused], before[key][unused])
        assert not torch.equal(after[key], before[key])


def test_what_is_dreamed_by_class_is_of_that_class_and_all_known_classes_are_dreamed_alike():
    learner = taught("rtf", dreaming=True)
    dreams, classes, answers, _ = learner._dreams(203)
    assert classes.bincount(minlength=4).tolist() == [51, 51, 51, 50]
    assert (answers.argmax(1) == classes).double().mean() > 0.95
    nearest = (dreams[:, None] - 0.8 * PATTERNS - 0.1).square().sum(2).argmin(1)
    assert (nearest == classes).double().mean() > 0.95
