"""The step that all single-network learners take, and its recording on a GPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cndpm.baselines.shared.components import NetworkSettings, Trainer
from cndpm.baselines.shared.networks import mlp
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
    learner.trainer.recorder.enabled &= recorded  # type: ignore[attr-defined]
    generator = torch.Generator().manual_seed(0)
    for task in range(3):
        if isinstance(learner, TaskBasedLearner):
            learner.begin_task(task)
        for step in range(12):
            x = torch.rand(6, 3, 16, 16, generator=generator)
            learner.learn(x, 2 * task + torch.randint(2, (6,), generator=generator))
            if (task, step) == (1, 5):
                learner.trainer.set_learning_rate(5e-3)  # type: ignore[attr-defined]
            if (task, step) == (1, 7):
                learner.load_state_dict(learner.state_dict())
        if isinstance(learner, TaskBasedLearner):
            learner.end_task()
    return learner.trainer.weights().cpu()  # type: ignore[attr-defined]


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


def test_momentum_decay_and_clipping_are_those_of_the_settings():
    """Written out: the decay joins the clipped gradient, and the momentum sums what came before."""
    network = mlp([2, 1])
    settings = NetworkSettings(optimizer="sgd", learning_rate=0.1, momentum=0.6, weight_decay=0.3, clip_value=0.5)
    trainer = Trainer(network, settings)
    weights, velocity = trainer.weights(), torch.zeros(3)
    for gradient in (torch.tensor([2.0, -3.0, 0.1]), torch.tensor([0.2, 0.4, -9.0])):
        velocity = 0.6 * velocity + gradient.clamp(-0.5, 0.5) + 0.3 * weights
        weights = weights - 0.1 * velocity
        trainer.step_along(gradient)
        torch.testing.assert_close(trainer.weights(), weights)


def test_a_gradient_as_a_vector_leads_where_the_loss_leads():
    torch.manual_seed(0)
    network, twin = mlp([5, 7, 3]), mlp([5, 7, 3])
    twin.load_state_dict(network.state_dict())
    x = torch.randn(8, 5)
    one, other = (Trainer(each, NetworkSettings(learning_rate=0.1)) for each in (network, twin))
    for _ in range(2):
        one.step(network(x).square().mean())
        before = other.weights()
        gradient = other.gradient(twin(x).square().mean())
        assert torch.equal(other.weights(), before)
        other.step_along(gradient)
        torch.testing.assert_close(one.weights(), other.weights())


def test_the_rate_may_change():
    settings = NetworkSettings(optimizer="sgd", learning_rate=0.2, weight_decay=0.0, clip_value=None)
    trainer = Trainer(mlp([2, 1]), settings)
    for rate in (0.2, 0.05):
        before = trainer.weights()
        if rate != 0.2:
            trainer.set_learning_rate(rate)
        trainer.step_along(torch.ones(3))
        torch.testing.assert_close(trainer.weights(), before - rate)


def test_weights_are_copies_and_a_state_brings_back_moments_and_rate():
    settings = NetworkSettings(optimizer="sgd", momentum=0.9, weight_decay=0.0, clip_value=None)
    one, other = Trainer(mlp([2, 1]), settings), Trainer(mlp([2, 1]), settings)
    copied = one.weights()
    one.step_along(torch.ones(3))
    assert not torch.equal(copied, one.weights())
    one.set_learning_rate(0.3)
    other.load_state_dict(one.state_dict())
    for trainer in (one, other):
        trainer.step_along(torch.ones(3))
    assert torch.equal(one.weights(), other.weights())


def test_a_footprint_counts_weights_and_buffers():
    network = torch.nn.Sequential(mlp([2, 3]), torch.nn.BatchNorm1d(3))
    kept = Trainer(network, NetworkSettings()).footprint()
    assert (kept.n_parameters, kept.n_numbers_kept) == (9 + 6, 9 + 6 + 3 + 3 + 1)


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
