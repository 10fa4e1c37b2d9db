"""Draws of a stage: random orders, and repetition where it is asked for."""

from __future__ import annotations

import numpy as np

from cndpm.streams.ordering import draw_stage


def test_a_stage_without_replacement_comes_in_random_order():
    first, second = (
        draw_stage([np.arange(200)], 200, replacement=False, rng=np.random.default_rng(seed)) for seed in (0, 1)
    )
    assert not np.array_equal(first, np.arange(200))
    assert not np.array_equal(first, second)


def test_with_replacement_rows_come_unequally_often():
    """Shuffled passes over the rows would give each row equally often."""
    rows = draw_stage([np.arange(10)], 10_000, replacement=True, rng=np.random.default_rng(0))
    counts = np.bincount(rows, minlength=10)
    assert 5 < counts.std() < 60  # a binomial count deviates by 30
