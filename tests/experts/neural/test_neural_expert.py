"""Experts of networks: losses weighed by responsibility, joint densities, and what waking changes."""

import pytest
import torch

from cndpm.experts.neural.lateral_predictors import Classifier
from cndpm.experts.neural.lesson import LessonSchedule
from cndpm.experts.neural.neural_expert import NeuralExpert, PartTraining
from cndpm.experts.neural.vae import VAE


def make(**options) -> NeuralExpert:
    torch.manual_seed(0)
    training = PartTraining(lr=1e-2, sleep=LessonSchedule(max_steps=10), **options)
    return NeuralExpert(
        VAE((3,), hidden=(4,), decoder_hidden=(4,), latent_dim=2), Classifier((3,), 2, hidden=(4,)), training, training
    )


def step(expert: NeuralExpert, x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> list[torch.Tensor]:
    """Weights after one step of both parts."""
    expert.learn_density(x, weight, (), torch.Generator().manual_seed(1))
    expert.learn_predictor(x, y, weight, ())
    return [p.detach().clone() for part, _ in expert.parts for p in part.parameters()]


def test_a_sample_without_responsibility_teaches_nothing():
    x, y = torch.rand(6, 3, generator=torch.Generator().manual_seed(2)), torch.tensor([0, 1, 0, 1, 0, 1])
    other = x.clone()
    other[3:] = 1 - other[3:]
    weight = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    other_y = torch.where(weight > 0, y, 1 - y)
    taught = step(make(), x, y, weight)
    for one, two in zip(taught, step(make(), other, other_y, weight), strict=True):
        torch.testing.assert_close(one, two)
    with_all = step(make(), x, y, torch.ones(6))
    assert any(not torch.equal(one, two) for one, two in zip(taught, with_all, strict=True))


def test_a_predictor_learns_by_responsibility_alone():
    x = torch.rand(2, 3, generator=torch.Generator().manual_seed(3))
    expert = make(clip=100.0, weight_decay=0.0)
    before = [p.detach().clone() for p in expert.predictor.parameters()]
    expert.learn_predictor(x, torch.tensor([0, 1]), torch.zeros(2), ())
    assert all(torch.equal(a, b) for a, b in zip(before, expert.predictor.parameters(), strict=True))


def test_the_joint_density_is_that_of_x_times_that_of_the_label():
    expert, x, y = make(), torch.rand(5, 3), torch.tensor([0, 1, 0, 1, 1])
    of_x = expert.density.log_prob(x)
    of_y = expert.predictor.predictive(x).gather(1, y[:, None])[:, 0]
    torch.testing.assert_close(expert.log_joint(x, y, ((), ())), of_x + of_y)
    torch.testing.assert_close(expert.log_joint(x, None, ((), ())), of_x)


def test_the_learning_rate_changes_on_waking():
    expert = make(wake_lr_factor=0.25)
    before = [float(optimiser.state_dict()["lr"]) for _, optimiser in expert.parts]
    expert.wake()
    after = [float(optimiser.state_dict()["lr"]) for _, optimiser in expert.parts]
    assert after == pytest.approx([0.25 * lr for lr in before])
