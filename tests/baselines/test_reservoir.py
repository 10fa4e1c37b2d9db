"""Experience replay: one step on the batch and the replayed samples together."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, batch, copied_generator, weights_of

from cndpm.baselines.reservoir import Reservoir
from cndpm.baselines.shared.replay import Augmentation


def test_the_batch_and_the_memory_count_by_their_samples():
    learner = Reservoir(Reservoir.Settings(memory_size=4, **PLAIN), input_shape=(5,), n_classes=4)
    network, first, second = learner.trainer.network, batch(4, 0), batch(6, 1)
    expected = after_step(network, F.cross_entropy(network(first[0]), first[1]))
    learner.learn(*first)
    torch.testing.assert_close(weights_of(network), expected)
    inputs, labels = (torch.cat(parts) for parts in zip(second, first, strict=True))
    expected = after_step(network, F.cross_entropy(network(inputs), labels))
    learner.learn(*second)
    torch.testing.assert_close(weights_of(network), expected)
    assert learner.memory.n_seen == 10


def test_as_many_are_replayed_as_asked_for_and_else_as_many_as_the_batch():
    for asked, expected in ((None, 5), (3, 3)):
        learner = Reservoir(
            Reservoir.Settings(memory_size=20, replay_batch=asked, **PLAIN), input_shape=(5,), n_classes=4
        )
        learner.learn(*batch(20, 0))
        drawn = []
        learner.train_on = lambda x, y, drawn=drawn: drawn.append(len(x))
        learner.learn(*batch(5, 1))
        assert drawn == [5 + expected]


def test_images_are_changed_at_every_use_and_stored_as_they_came():
    settings = Reservoir.Settings(memory_size=4, augmentation="shift", **PLAIN)
    learner = Reservoir(settings, input_shape=(1, 16, 16), n_classes=2)
    x, y = torch.rand(4, 1, 16, 16, generator=torch.Generator().manual_seed(0)), torch.arange(4) % 2
    changed = Augmentation("shift", (1, 16, 16), copied_generator(learner.random.generator))(x)
    network = learner.trainer.network
    expected = after_step(network, F.cross_entropy(network(changed), y))
    learner.learn(x, y)
    torch.testing.assert_close(weights_of(network), expected)
    assert torch.equal(learner.memory.rows["x"], x)


def test_without_labels_the_memory_is_replayed_to_the_vae():
    learner = Reservoir(Reservoir.Settings(memory_size=4, latent=2, **PLAIN), input_shape=(5,))
    first, second = (torch.rand(n, 5, generator=torch.Generator().manual_seed(n)) for n in (4, 6))
    learner.learn(first, None)
    vae, draws = learner.trainer.network, copied_generator(learner.random.generator)
    inputs = torch.cat([second, first[torch.randperm(4, generator=draws)]])
    expected = after_step(vae, -vae.elbo(inputs, torch.randn(1, 10, 2, generator=draws)).mean())
    learner.learn(second, None)
    torch.testing.assert_close(weights_of(vae), expected)
    assert learner.memory.rows.keys() == {"x"}
