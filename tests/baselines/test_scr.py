"""Supervised contrastive replay: its loss as a double sum, its step, and answers by the nearest class mean."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from plain_steps import PLAIN, RATE, after_step, batch, copied_generator, weights_of
from torch import Tensor

from cndpm.baselines.scr import SCR, class_means, contrastive_loss
from cndpm.baselines.shared.replay import Augmentation


def contrast_by_hand(z: Tensor, y: Tensor, temperature: float) -> Tensor:
    """The supervised contrastive loss, one pair at a time."""
    unit = z / z.norm(dim=1, keepdim=True)
    total, n_counted = torch.zeros(()), 0
    for i in range(len(z)):
        positives = [p for p in range(len(z)) if p != i and y[p] == y[i]]
        if not positives:
            continue
        everyone = sum(torch.exp(unit[i] @ unit[a] / temperature) for a in range(len(z)) if a != i)
        terms = [-torch.log(torch.exp(unit[i] @ unit[p] / temperature) / everyone) for p in positives]
        total, n_counted = total + sum(terms) / len(positives), n_counted + 1
    return total / max(1, n_counted)


def test_contrastive_loss_is_its_double_sum():
    z, y = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 0, 1, 1, 1, 2])
    expected = contrast_by_hand(z, y, 0.5)
    torch.testing.assert_close(contrastive_loss(z, y, temperature=0.5), expected)
    assert contrastive_loss(z[:2], torch.tensor([0, 1]), temperature=0.5) == 0  # nobody has a partner


def test_class_means_are_unit_length_and_count_their_samples():
    features, y = torch.tensor([[2.0, 0.0], [0.0, 3.0], [0.0, -1.0]]), torch.tensor([0, 0, 2])
    means, counts = class_means(features, y, 3)
    torch.testing.assert_close(means[0], torch.tensor([1.0, 1.0]) / 2**0.5)
    torch.testing.assert_close(means[2], torch.tensor([0.0, -1.0]))
    assert counts.tolist() == [2, 0, 1]


def test_a_step_contrasts_two_views_of_the_batch_and_of_the_memory():
    learner = SCR(SCR.Settings(memory_size=5, temperature=0.4, projection=3, **PLAIN), input_shape=(5,), n_classes=4)
    first, second = batch(5, 0), batch(4, 1)
    alone = contrast_by_hand(learner.network(first[0]).repeat(2, 1), first[1].repeat(2), 0.4)
    expected = after_step(learner.network, alone)
    learner.learn(*first)
    torch.testing.assert_close(weights_of(learner.network), expected)
    inputs, labels = torch.cat([second[0], first[0]]), torch.cat([second[1], first[1]])
    both = contrast_by_hand(learner.network(inputs).repeat(2, 1), labels.repeat(2), 0.4)
    expected = after_step(learner.network, both)
    learner.learn(*second)
    torch.testing.assert_close(weights_of(learner.network), expected)


def test_the_second_view_of_an_image_is_changed_at_random():
    settings = SCR.Settings(memory_size=4, projection=3, augmentation="shift", **PLAIN)
    learner = SCR(settings, input_shape=(1, 16, 16), n_classes=2)
    x, y = torch.rand(4, 1, 16, 16, generator=torch.Generator().manual_seed(0)), torch.arange(4) % 2
    changed = Augmentation("shift", (1, 16, 16), copied_generator(learner.random.generator))(x)
    assert not torch.equal(changed, x)
    loss = contrast_by_hand(learner.network(torch.cat([x, changed])), y.repeat(2), settings.temperature)
    expected = after_step(learner.network, loss, RATE)
    learner.learn(x, y)
    torch.testing.assert_close(weights_of(learner.network), expected)
    assert torch.equal(learner.memory.rows["x"], x)


def test_answers_follow_the_distance_to_the_class_means_of_the_memory():
    learner = SCR(SCR.Settings(memory_size=20, temperature=0.3, **PLAIN), input_shape=(5,), n_classes=4)
    x, y = batch(9, 0, (0, 3))
    learner.learn(x, y)
    asked, _ = batch(6, 1)
    with torch.no_grad():
        features, questions = (F.normalize(learner.network.features(each), dim=1) for each in (x, asked))
    means = F.normalize(torch.stack([features[y == label].mean(0) for label in range(3)]), dim=1)
    distance = (questions[:, None] - means[None]).square().sum(2)
    answers = learner.predict_log_proba(asked)
    torch.testing.assert_close(answers[:, :3], F.log_softmax(-distance / 0.3, dim=1), atol=1e-5, rtol=1e-5)
    assert torch.isneginf(answers[:, 3]).all()
    assert not learner.network.training  # batch normalisation answers by what it remembers


def test_classes_are_equally_probable_before_the_first_batch():
    learner = SCR(SCR.Settings(**PLAIN), input_shape=(5,), n_classes=4)
    answers = learner.predict_log_proba(torch.rand(2, 5))
    assert answers.flatten().tolist() == pytest.approx([-math.log(4)] * 8)
