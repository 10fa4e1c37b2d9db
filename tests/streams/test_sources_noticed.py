"""Drifting clusters: their spread, their circle, and independent batches."""

from __future__ import annotations

import pytest
import torch

from cndpm.streams import drifting_clusters


@pytest.mark.parametrize("spread", [0.05, 0.5])
def test_samples_of_a_class_deviate_by_the_spread(spread: float):
    x, y = drifting_clusters(spread=spread, batch_size=2000)(0)
    assert x[y == 0].std(0).mean().item() == pytest.approx(spread, rel=0.05)


def test_centres_move_on_a_circle_of_radius_one_in_ten_periods():
    draw = drifting_clusters(dimension=2000, period=4, spread=1e-6, n_classes=2)

    def centre(i: int) -> torch.Tensor:
        x, y = draw(i)
        return x[y == 0][0]

    for i, distance in ((10, 2**0.5), (20, 2.0), (40, 0.0)):  # a quarter, a half and a whole turn
        assert (centre(i) - centre(0)).norm().item() == pytest.approx(distance, abs=0.15)


def test_batches_are_drawn_independently():
    draw = drifting_clusters(period=10**6, batch_size=200)
    (x, y), (x_next, y_next) = draw(0), draw(1)
    assert not torch.equal(y, y_next)
    noise = x[y == 0][:50] - x[y == 0].mean(0)
    assert not torch.allclose(noise, x_next[y_next == 0][:50] - x_next[y_next == 0].mean(0), atol=0.1)
