"""Fine-tuning: plain steps, and nothing else."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, batch, copied_generator, weights_of

from cndpm.baselines.finetune import FineTune


def test_a_labelled_batch_is_one_step_on_its_mean_cross_entropy():
    learner = FineTune(FineTune.Settings(**PLAIN), input_shape=(5,), n_classes=4)
    network = learner.trainer.network
    for seed in range(3):
        x, y = batch(6, seed)
        expected = after_step(network, F.cross_entropy(network(x), y))
        learner.learn(x, y)
        torch.testing.assert_close(weights_of(network), expected)
    with torch.no_grad():
        torch.testing.assert_close(learner.predict_log_proba(x), F.log_softmax(network(x), dim=1))


def test_batch_normalisation_learns_from_batches_and_answers_by_what_it_remembers():
    learner = FineTune(FineTune.Settings(**PLAIN), input_shape=(5,), n_classes=4)
    learner.predict_log_proba(batch(2, 0)[0])
    assert not learner.trainer.network.training
    learner.learn(*batch(6, 0))
    assert learner.trainer.network.training
    density = FineTune(FineTune.Settings(latent=2, **PLAIN), input_shape=(5,))
    density.log_prob(torch.rand(2, 5))
    assert not density.trainer.network.training


def test_an_unlabelled_batch_is_one_step_up_the_mean_bound_with_one_latent_sample_each():
    learner = FineTune(FineTune.Settings(latent=2, **PLAIN), input_shape=(5,))
    vae = learner.trainer.network
    for seed in range(2):
        x = torch.rand(6, 5, generator=torch.Generator().manual_seed(seed))
        noise = torch.randn(1, 6, 2, generator=copied_generator(learner.random.generator))
        expected = after_step(vae, -vae.elbo(x, noise).mean())
        learner.learn(x, None)
        torch.testing.assert_close(weights_of(vae), expected)


def test_a_density_is_the_bound_averaged_over_the_latent_samples_of_the_seed():
    learner = FineTune(FineTune.Settings(latent=2, test_latent_samples=7, **PLAIN), input_shape=(5,), seed=3)
    x = torch.rand(4, 5, generator=torch.Generator().manual_seed(0))
    learner.learn(x, None)
    noise = torch.randn(7, 1, 2, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        each = torch.stack([learner.trainer.network.elbo(x, noise[i : i + 1]) for i in range(7)])
    torch.testing.assert_close(learner.log_prob(x), each.mean(0))
