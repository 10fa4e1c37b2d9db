"""The balanced memory and the network made of it."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from plain_steps import PLAIN, after_step, batch
from scipy.stats import chisquare
from torch.nn.utils import vector_to_parameters

from cndpm.baselines.gdumb import GDumb, balanced_place
from cndpm.baselines.shared.components import Trainer
from cndpm.baselines.shared.networks import build_classifier


@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=80), capacity=st.integers(1, 12))
def test_memory_is_as_balanced_as_the_stream_allows(labels: list[int], capacity: int):
    generator = torch.Generator().manual_seed(0)
    stored: list[int] = []
    for label in labels:
        place = balanced_place(stored, label, capacity, generator)
        if place is not None:
            stored[place : place + 1] = [label]
    assert len(stored) == min(capacity, len(labels))
    seen, kept = Counter(labels), Counter(stored)
    for label in seen:  # a class has fewer than the largest only if the stream had no more of it
        assert kept[label] >= min(seen[label], max(kept.values()) - 1)


def test_every_sample_of_the_largest_class_is_replaced_equally_often():
    generator = torch.Generator().manual_seed(0)
    places = [balanced_place([0, 1, 0, 0, 1], 2, 5, generator) for _ in range(1500)]
    counts = Counter(places)
    assert counts.keys() == {0, 2, 3}
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_a_full_memory_turns_away_its_largest_class_and_lets_others_in():
    learner = GDumb(GDumb.Settings(memory_size=4, epochs=1, **PLAIN), input_shape=(5,), n_classes=4)
    x, _ = batch(9, 0)
    learner.learn(x[:6], torch.zeros(6, dtype=torch.int64))
    assert torch.equal(learner.memory.rows["x"], x[:4])  # the first ones stay
    learner.learn(x[6:], torch.tensor([1, 1, 2]))
    rows = learner.memory.rows
    assert sorted(rows["y"].tolist()) == [0, 1, 1, 2]  # of two classes alike in size the lower one makes room
    assert learner._labels == rows["y"].tolist()
    for row, label in zip(rows["x"], rows["y"], strict=True):
        number = int((x == row).all(1).nonzero())
        assert label == [0, 0, 0, 0, 0, 0, 1, 1, 2][number]


def test_the_answering_network_is_trained_from_scratch_with_a_rate_that_falls_like_half_a_cosine():
    """With one batch as large as the memory the order does not matter."""
    training = {**PLAIN, "momentum": 0.0, "learning_rate": 0.8, "final_learning_rate": 0.1}
    settings = GDumb.Settings(memory_size=12, epochs=4, batch_size=12, **training)
    learner = GDumb(settings, input_shape=(5,), n_classes=4, seed=9)
    x, y = batch(12, 0)
    learner.learn(x[:6], y[:6])
    learner.predict_log_proba(x)  # trains a network that leaves no trace in the next one
    learner.learn(x[6:], y[6:])
    network = build_classifier("mlp", (5,), 4, torch.Generator().manual_seed(9), hidden=6)
    for step in range(4):
        rate = 0.1 + (0.8 - 0.1) / 2 * (1 + math.cos(math.pi * step / 4))
        vector_to_parameters(after_step(network, F.cross_entropy(network(x), y), rate), network.parameters())
    with torch.no_grad():
        expected = F.log_softmax(network(x), dim=1)
    torch.testing.assert_close(learner.predict_log_proba(x), expected, atol=1e-5, rtol=1e-5)


def test_an_epoch_presents_every_sample_once_in_a_new_order_while_the_rate_falls(monkeypatch: pytest.MonkeyPatch):
    training = {**PLAIN, "learning_rate": 0.8, "final_learning_rate": 0.1}
    settings = GDumb.Settings(memory_size=10, epochs=3, batch_size=4, **training)
    learner = GDumb(settings, input_shape=(5,), n_classes=4)
    learner.learn(*batch(10, 0))
    presented: list[list[int]] = []
    rates: list[float] = []
    take, change = learner.memory.take, Trainer.set_learning_rate
    learner.memory.take = lambda index: presented.append(index.tolist()) or take(index)
    monkeypatch.setattr(Trainer, "set_learning_rate", lambda self, rate: rates.append(rate) or change(self, rate))
    learner.finish()
    assert [len(rows) for rows in presented] == [4, 4, 2] * 3
    epochs = [[row for rows in presented[3 * i : 3 * i + 3] for row in rows] for i in range(3)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert rates == pytest.approx([0.1 + 0.35 * (1 + math.cos(math.pi * step / 9)) for step in range(9)])
    learner.predict_log_proba(batch(3, 1)[0])
    assert len(presented) == 9  # the trained network answers until the memory changes


def test_answers_follow_the_memory_as_it_grows():
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.randn(30, 4, generator=generator) + 3, torch.randn(30, 4, generator=generator) - 3])
    y = torch.arange(60) // 30
    learner = GDumb(GDumb.Settings(hidden=8, memory_size=20, epochs=20), input_shape=(4,), n_classes=2)
    learner.learn(x[:30], y[:30])
    assert (learner.predict_log_proba(x).argmax(1) == 0).all()
    learner.learn(x[30:], y[30:])
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() > 0.95


def test_answers_are_the_same_to_who_asks_without_gradients():
    x, y = batch(20, 0)
    with_gradients, without = (
        GDumb(GDumb.Settings(memory_size=20, epochs=3, **PLAIN), input_shape=(5,), n_classes=4) for _ in range(2)
    )
    for learner in (with_gradients, without):
        learner.learn(x, y)
    with torch.no_grad():
        answers = without.predict_log_proba(x)
    assert torch.equal(answers, with_gradients.predict_log_proba(x))
