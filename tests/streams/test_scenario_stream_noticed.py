"""Streams of scenarios: lengths, scales and independent draws."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from cndpm.streams import Scenario, load_scenario

GREY = {"dataset": "grey.npz"}


@pytest.fixture
def grey(tmp_path: Path) -> Path:
    """A folder with `grey.npz`: 700 equal grey images of one class, and 20 to test with."""
    x, y = np.full((700, 28, 28), 128, np.uint8), np.zeros(700, np.int64)
    np.savez(tmp_path / "grey.npz", x_train=x, y_train=y, x_test=x[:20], y_test=y[:20])
    return tmp_path


def test_bytes_from_0_to_255_become_floats_from_0_to_1():
    x = torch.cat([batch.x for batch in load_scenario("split-digits").build()])
    assert x.min() == 0
    assert x.max() == 1
    torch.testing.assert_close((x * 255).round() / 255, x)


def test_a_stage_measured_in_steps_has_as_many_batches():
    stage = {"subsets": [{"dataset": "digits"}], "steps": 3}
    stream = Scenario(name="a", stages=[stage], batch_size=7).build()
    assert stream.n_samples == 21
    assert [len(batch.x) for batch in stream] == [7, 7, 7]


@pytest.mark.parametrize("width", [0.25, 0.5])
def test_a_linear_blur_mixes_stages_over_its_width_of_a_mean_stage(tmp_path: Path, width: float):
    x, y = np.zeros((1600, 1)), np.repeat(np.arange(4), 400)
    np.savez(tmp_path / "rows.npz", x_train=x, y_train=y, x_test=x[:4], y_test=np.arange(4))
    stages = [{"subsets": [{"dataset": "rows.npz", "classes": [label]}], "epochs": 1} for label in range(4)]
    scenario = Scenario(name="a", stages=stages, blur={"kind": "linear", "width": width})
    labels = torch.cat([batch.y for batch in scenario.build(data_dir=tmp_path)])
    away = [(labels[: 400 * k] >= k).nonzero().min() for k in range(1, 4)]
    reach = [400 * k - int(first) for k, first in enumerate(away, start=1)]
    assert 0.7 * 400 * width / 2 < max(reach) <= 400 * width / 2 + 1


def test_pixels_are_drawn_anew_in_every_block_round_and_test_set(grey: Path):
    stages = [{"subsets": [{**GREY, "task": name}], "epochs": 1} for name in ("a", "b")]
    scenario = Scenario(name="grey", stages=stages[:1], transform={"binarise": True}, endless=True, labelled=False)
    stream = scenario.build(data_dir=grey)
    first = [batch.x for batch in islice(stream.batches(), 70)]
    blocks = [first[start : start + stream._chunk_batches] for start in range(0, 70, stream._chunk_batches)]  # type: ignore[attr-defined]
    assert len(blocks) > 2
    assert not torch.equal(blocks[0][0], blocks[1][0])
    assert not torch.equal(first[0], next(stream.batches(70)).x)
    two = Scenario(name="grey", stages=stages, transform={"binarise": True}).build(data_dir=grey)
    assert not torch.equal(two.tasks[0].x, two.tasks[1].x)


def test_stages_of_the_same_samples_come_in_different_orders():
    stages = [{"subsets": [{"dataset": "digits", "classes": [3]}], "epochs": 1}] * 2
    stream = Scenario(name="a", stages=stages).build()
    x = torch.cat([batch.x for batch in stream])
    n = stream.stage_samples[0]
    assert not torch.equal(x[:n], x[n:])
    assert sorted(map(tuple, x[:n].flatten(1).tolist())) == sorted(map(tuple, x[n:].flatten(1).tolist()))
