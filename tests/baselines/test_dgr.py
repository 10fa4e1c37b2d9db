"""Deep generative replay: the steps of both networks written out, on dreams that are drawn again."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, copied_generator, weights_of
from torch import Tensor

from cndpm.baselines.dgr import DGR

SETTINGS = DGR.Settings(**{**PLAIN, "latent": 2, "n_steps": 1, "learning_rate": 0.1})


def batch(n: int, seed: int, first: int) -> tuple[Tensor, Tensor]:
    """Inputs in [0, 1] of the classes first and first + 1."""
    return torch.rand(n, 5, generator=torch.Generator().manual_seed(seed)), first + torch.arange(n) % 2


def learn_two_tasks() -> DGR:
    learner = DGR(SETTINGS, input_shape=(5,), n_classes=8)
    for task in range(2):
        learner.begin_task(task)
        for seed in range(3):
            learner.learn(*batch(6, 10 * task + seed, 2 * task))
        learner.end_task()
    return learner


def test_in_the_first_task_both_networks_learn_the_batch_alone():
    learner = DGR(SETTINGS, input_shape=(5,), n_classes=8)
    learner.begin_task(0)
    x, y = batch(6, 0, 0)
    noise = torch.randn(1, 6, 2, generator=copied_generator(learner.random.generator))
    classifier = after_step(learner.network, F.cross_entropy(learner.network(x)[:, :2], y), 0.1)
    generator = after_step(learner.vae, -learner.vae.elbo(x, noise).mean(), 0.1)
    learner.learn(x, y)
    torch.testing.assert_close(weights_of(learner.network), classifier)
    torch.testing.assert_close(weights_of(learner.vae), generator)


def test_in_the_third_task_dreams_labelled_by_the_previous_network_weigh_two_thirds():
    learner = learn_two_tasks()
    assert learner.past_network.network is not None
    with torch.no_grad():  # so that answers differ: of classes not known yet, and of the network that goes on learning
        learner.past_network.network.head.bias[4:] += 5
        learner.past_network.network.head.bias[1] += 2
    past_network, past_vae = copy.deepcopy(learner.past_network.network), copy.deepcopy(learner.past_vae.network)
    learner.begin_task(2)
    for seed in (20, 21):  # at the second step the networks differ from those of the past
        x, y = batch(7, seed, 4)
        draws = copied_generator(learner.random.generator)
        with torch.no_grad():
            dreams = torch.sigmoid(past_vae.decoder(torch.randn(7, 2, generator=draws)))
            labels = past_network(dreams)[:, :4].argmax(1)
            assert not torch.equal(labels, learner.network(dreams)[:, :4].argmax(1))
        noise = torch.randn(1, 14, 2, generator=draws)
        present, past = (F.cross_entropy(learner.network(a)[:, :6], b) for a, b in ((x, y), (dreams, labels)))
        bounds = learner.vae.elbo(torch.cat([x, dreams]), noise)
        classifier = after_step(learner.network, present / 3 + past * 2 / 3, 0.1)
        generator = after_step(learner.vae, -bounds[:7].mean() / 3 - bounds[7:].mean() * 2 / 3, 0.1)
        learner.learn(x, y)
        torch.testing.assert_close(weights_of(learner.network), classifier)
        torch.testing.assert_close(weights_of(learner.vae), generator)


def test_the_networks_of_the_past_stay_as_they_were():
    learner = learn_two_tasks()
    before = [weights_of(each.network) for each in (learner.past_network, learner.past_vae)]
    learner.begin_task(2)
    learner.learn(*batch(6, 20, 4))
    after = [weights_of(each.network) for each in (learner.past_network, learner.past_vae)]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    learner.end_task()
    assert torch.equal(weights_of(learner.past_network.network), weights_of(learner.network))
    assert torch.equal(weights_of(learner.past_vae.network), weights_of(learner.vae))


def test_answers_are_the_softmax_over_the_classes_seen():
    learner = learn_two_tasks()
    x, _ = batch(6, 0, 0)
    answers = learner.predict_log_proba(x)
    with torch.no_grad():
        torch.testing.assert_close(answers[:, :4], F.log_softmax(learner.network(x)[:, :4], dim=1))
    assert torch.isneginf(answers[:, 4:]).all()
    assert not learner.network.training  # batch normalisation answers by what it remembers
