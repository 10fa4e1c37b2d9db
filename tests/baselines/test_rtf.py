"""Replay through feedback: its step written out, on dreams that are drawn again."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, copied_generator, weights_of
from torch import Tensor

from cndpm.baselines.dgr import RtF

T = 1.5


def batch(n: int, seed: int, first: int) -> tuple[Tensor, Tensor]:
    """Inputs in [0, 1] of the classes first and first + 1."""
    return torch.rand(n, 5, generator=torch.Generator().manual_seed(seed)), first + torch.arange(n) % 2


def make_learner(prior: str) -> RtF:
    plain = {**PLAIN, "latent": 2, "n_steps": 1, "learning_rate": 0.2, "temperature": T, "prior": prior}
    return RtF(RtF.Settings(**plain), input_shape=(5,), n_classes=8)


def bounds_by_hand(learner: RtF, x: Tensor, y: Tensor, noise: Tensor) -> Tensor:
    """The evidence lower bound with one latent sample, by torch's distributions, (batch,)."""
    network = learner.network
    mean, log_variance = network.posterior(network.encoder(x)).chunk(2, dim=1)
    posterior = torch.distributions.Normal(mean, torch.exp(0.5 * log_variance))
    prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    if network.priors is not None:
        prior = torch.distributions.Normal(network.priors.mean[y], torch.exp(0.5 * network.priors.log_variance[y]))
    logits = network.decoder(mean + posterior.stddev * noise[0])
    likelihood = -F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)
    return likelihood - torch.distributions.kl_divergence(posterior, prior).sum(1)


@pytest.mark.parametrize("prior", ["classes", "standard"])
def test_the_loss_is_that_of_the_batch_then_also_that_of_dreams_with_their_softened_answers(prior: str):
    learner = make_learner(prior)
    past = learner.network
    for task in range(3):
        learner.begin_task(task)
        known, seen = 2 * task, 2 * task + 2
        for seed in range(2):
            x, y = batch(7, 10 * task + seed, known)
            draws = copied_generator(learner.random.generator)
            if task:
                labels = torch.arange(7) % known
                z = torch.randn(7, 2, generator=draws)
                with torch.no_grad():
                    if prior == "classes":
                        z = past.priors.mean[labels] + torch.exp(0.5 * past.priors.log_variance[labels]) * z
                    dreams = torch.sigmoid(past.decoder(z))
                    answers = F.softmax(past.head(past.encoder(dreams))[:, :known] / T, dim=1)
                noise = torch.randn(1, 14, 2, generator=draws)
                soft = F.log_softmax(learner.network.classify(dreams)[:, :seen] / T, dim=1)[:, :known]
                replayed = -(T**2) * (answers * soft).sum(1).mean()
                replayed = replayed - bounds_by_hand(learner, dreams, labels, noise[:, 7:]).mean() / 5
            else:
                noise, replayed = torch.randn(1, 7, 2, generator=draws), torch.zeros(())
            present = F.cross_entropy(learner.network.classify(x)[:, :seen], y)
            present = present - bounds_by_hand(learner, x, y, noise[:, :7]).mean() / 5
            share = 1 / (task + 1)
            expected = after_step(learner.network, share * present + (1 - share) * replayed, 0.2)
            learner.learn(x, y)
            torch.testing.assert_close(weights_of(learner.network), expected, atol=1e-5, rtol=1e-4)
        learner.end_task()
        past = copy.deepcopy(learner.network)


def test_answers_are_the_softmax_over_the_classes_seen():
    learner = make_learner("classes")
    x, y = batch(6, 0, 0)
    learner.learn(x, y)
    answers = learner.predict_log_proba(x)
    with torch.no_grad():
        expected = F.log_softmax(learner.network.head(learner.network.encoder(x))[:, :2], dim=1)
    torch.testing.assert_close(answers[:, :2], expected)
    assert torch.isneginf(answers[:, 2:]).all()
