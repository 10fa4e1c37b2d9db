"""The balanced memory and the network made of it."""

from __future__ import annotations

from collections import Counter

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.baselines.gdumb import GDumb, balanced_place


@settings(deadline=None)
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
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(20, 4, generator=generator), torch.arange(20) % 2
    with_gradients, without = (
        GDumb(GDumb.Settings(hidden=8, memory_size=20, epochs=3), input_shape=(4,), n_classes=2) for _ in range(2)
    )
    for learner in (with_gradients, without):
        learner.learn(x, y)
    with torch.no_grad():
        answers = without.predict_log_proba(x)
    assert torch.equal(answers, with_gradients.predict_log_proba(x))
