"""Samples without a limit."""

from __future__ import annotations

import torch

from cndpm.baselines.iid import GrowingSamples
from cndpm.learner import Footprint


def test_every_batch_is_kept_in_order_as_a_copy():
    samples = GrowingSamples()
    assert samples.rows() == {}
    x = torch.arange(3.0)
    samples.add(x=x, y=torch.tensor([0, 1, 2]))
    x.zero_()
    samples.add(x=torch.tensor([3.0]), y=torch.tensor([3]))
    assert samples.rows()["x"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert samples.rows()["y"].tolist() == [0, 1, 2, 3]
    assert len(samples) == 4
    assert samples.footprint() == Footprint(0, 0, memory_samples=4, memory_bytes=4 * (4 + 8))


def test_samples_come_back_from_their_state_in_place_of_others():
    samples, other = GrowingSamples(), GrowingSamples()
    for value in (1.0, 2.0):
        samples.add(x=torch.tensor([value]))
    other.add(x=torch.tensor([9.0]))
    other.load_state_dict(samples.state_dict())
    assert other.rows()["x"].tolist() == [1.0, 2.0]
    other.clear()
    assert len(other) == 0
    assert other.state_dict() == {"rows": {}}
