"""The step that all single-network learners take, and its recording on a GPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cndpm.baselines.shared.networks import mlp
from cndpm.baselines.shared.training import NetworkSettings, Trainer
from cndpm.experiments.learners import learner_class
from cndpm.learner import TaskBasedLearner

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="only a GPU records steps")


def weights_after(name: str, *, recorded: bool, device: str, optimizer: str, network: str = "mlp") -> Tensor:
    """All weights after three tasks of twelve batches.

    In the second the learning rate changes and the learner is resumed; what it records then, the third uses.
    """
    cls = learner_class(name)
    facts = {"input_shape": (3, 16, 16), "n_classes": 6, "device": device}
    settings = cls.Settings(hidden=16, network=network, optimizer=optimizer, learning_rate=1e-2)
    learner = cls(settings, **facts)
    learner.trainer.recorder.enabled &= recorded
    generator = torch.Generator().manual_seed(0)
    for task in range(3):
        if isinstance(learner, TaskBasedLearner):
            learner.begin_task(task)
        for step in range(12):
            x = torch.rand(6, 3, 16, 16, generator=generator)
            learner.learn(x, 2 * task + torch.randint(2, (6,), generator=generator))
            if (task, step) == (1, 5):
                learner.trainer.set_learning_rate(5e-3)
            if (task, step) == (1, 7):
                learner.load_state_dict(learner.state_dict())
        if isinstance(learner, TaskBasedLearner):
            learner.end_task()
    return learner.trainer.weights().cpu()


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_a_step_is_the_optimisers_own_on_the_clipped_gradient(name: str):
    torch.manual_seed(0)
    network, twin = mlp([5, 7, 3]), mlp([5, 7, 3])
    twin.load_state_dict(network.state_dict())
    settings = NetworkSettings(optimizer=name, learning_rate=0.1, clip_value=0.02)
    trainer = Trainer(network, settings)
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[name]
    reference = kind(twin.parameters(), lr=0.1, weight_decay=settings.weight_decay, foreach=False)
    for _ in range(3):
        x = torch.randn(8, 5)
        trainer.step(network(x).square().mean())
        reference.zero_grad()
        twin(x).square().mean().backward()
        torch.nn.utils.clip_grad_value_(twin.parameters(), 0.02)
        reference.step()
    for ours, theirs in zip(network.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


@GPU
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("name", ["finetune", "reservoir", "er-ace", "der", "der++", "dgr", "rtf"])
def test_recorded_steps_are_the_steps_that_were_recorded(name: str, optimizer: str):
    plain, recorded = (weights_after(name, recorded=r, device="cuda", optimizer=optimizer) for r in (False, True))
    torch.testing.assert_close(recorded, plain, rtol=1e-3, atol=1e-4)


@GPU
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_recorded_steps_of_convolutions_are_the_same_to_the_bit_where_convolutions_are(optimizer: str):
    """By default cuDNN adds up gradients in any order: two runs that record nothing differ as much as two others."""
    with torch.backends.cudnn.flags(enabled=True, deterministic=True):
        plain, recorded = (
            weights_after("er-ace", recorded=r, device="cuda", optimizer=optimizer, network="resnet18")
            for r in (False, True)
        )
    assert torch.equal(recorded, plain)


@GPU
def test_a_step_is_recorded_at_all():
    cls = learner_class("er-ace")
    learner = cls(cls.Settings(hidden=8), input_shape=(4,), n_classes=2, device="cuda")
    for seed in range(10):
        x = torch.rand(6, 4, generator=torch.Generator().manual_seed(seed))
        learner.learn(x, torch.arange(6) % 2)
    assert learner.trainer.recorder.enabled
    assert any(routine._recordings for routine in learner.trainer._routines.values())
