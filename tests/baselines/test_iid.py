"""The two references without the difficulty: their steps written out."""

from __future__ import annotations

import copy
import math

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, RATE, after_step, batch, weights_of
from torch.nn.utils import vector_to_parameters

from cndpm.baselines.iid import IIDOffline, IIDOnline


def test_iid_online_takes_one_plain_step_on_every_batch():
    learner = IIDOnline(IIDOnline.Settings(**PLAIN), input_shape=(5,), n_classes=4)
    network = learner.trainer.network
    for seed in range(2):
        x, y = batch(6, seed)
        expected = after_step(network, F.cross_entropy(network(x), y))
        learner.learn(x, y)
        torch.testing.assert_close(weights_of(network), expected)


def test_iid_offline_trains_on_everything_with_a_rate_that_falls_like_half_a_cosine():
    """With one batch as large as the collection the order does not matter."""
    learner = IIDOffline(IIDOffline.Settings(epochs=4, batch_size=20, **PLAIN), input_shape=(5,), n_classes=4)
    by_hand = copy.deepcopy(learner.trainer.network)
    batches = [batch(6, seed) for seed in range(3)]
    for each in batches:
        learner.learn(*each)
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    for step in range(4):
        rate = RATE / 2 * (1 + math.cos(math.pi * step / 4))
        vector_to_parameters(after_step(by_hand, F.cross_entropy(by_hand(x), y), rate), by_hand.parameters())
    learner.finish()
    torch.testing.assert_close(weights_of(learner.trainer.network), weights_of(by_hand), atol=1e-5, rtol=1e-5)


def test_an_epoch_of_iid_offline_presents_every_sample_once_in_batches_of_a_new_order():
    settings = IIDOffline.Settings(epochs=3, batch_size=4, **PLAIN)
    learner = IIDOffline(settings, input_shape=(5,), n_classes=4)
    x, y = batch(10, 0)
    presented: list[list[int]] = []

    def record(x_drawn: torch.Tensor, y_drawn: torch.Tensor) -> None:
        rows = (x_drawn[:, None] == x).all(2).nonzero()[:, 1]
        assert torch.equal(y[rows], y_drawn)
        presented.append(rows.tolist())

    learner.train_on = record
    learner.learn(x, y)
    learner.finish()
    assert [len(rows) for rows in presented] == [4, 4, 2] * 3
    epochs = [[row for rows in presented[3 * i : 3 * i + 3] for row in rows] for i in range(3)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    rates = [RATE / 2 * (1 + math.cos(math.pi * step / 9)) for step in range(9)]
    assert learner.trainer.optimizer.param_groups[0]["lr"] == rates[-1]


def test_unlabelled_images_are_not_augmented():
    for n_classes, name in ((2, "shift"), (None, "none")):
        learner = IIDOffline(IIDOffline.Settings(hidden=4), input_shape=(1, 8, 8), n_classes=n_classes)
        assert learner.augmentation.name == name


def test_finishing_an_empty_stream_changes_nothing():
    learner = IIDOffline(IIDOffline.Settings(**PLAIN), input_shape=(5,), n_classes=4)
    before = weights_of(learner.trainer.network)
    learner.finish()
    assert torch.equal(weights_of(learner.trainer.network), before)
