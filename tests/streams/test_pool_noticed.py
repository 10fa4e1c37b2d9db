"""Parts of datasets that a stream draws from: fractions, noise and transformations, sample by sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cndpm.streams import Scenario, load_scenario, pool
from cndpm.streams.variations import noisy
from cndpm.validation import ConfigError


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A folder with `rows.npz`: two classes of twenty samples, numbered within their class."""
    number = np.tile(np.arange(20.0), 2)
    x, y = np.stack([number, number], axis=1), np.repeat([0, 1], 20)
    np.savez(tmp_path / "rows.npz", x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
    return tmp_path


def kept(folder: Path, *, seed: int, fraction: float = 0.5, subset_fraction: float = 1.0) -> list[set[int]]:
    """The numbers of the samples of each class that are presented."""
    stage = {"subsets": [{"dataset": "rows.npz", "fraction": subset_fraction}], "epochs": 1}
    stream = Scenario(name="a", stages=[stage], fraction=fraction).build(data_dir=folder, seed=seed)
    pairs = [(int(x[0]), int(y)) for batch in stream for x, y in zip(*batch, strict=True)]
    return [{number for number, y in pairs if y == label} for label in (0, 1)]


def test_a_fraction_is_drawn_for_each_class_and_seed_by_itself(rows: Path):
    first, second = kept(rows, seed=0), kept(rows, seed=1)
    assert [len(part) for part in (*first, *second)] == [10] * 4
    assert first[0] != first[1]
    assert first[0] != second[0]


def test_fractions_of_scenario_and_subset_multiply_and_smaller_ones_are_parts_of_larger(rows: Path):
    large, small = kept(rows, seed=0), kept(rows, seed=0, subset_fraction=0.5)
    assert [len(part) for part in small] == [5, 5]
    assert all(a < b for a, b in zip(small, large, strict=True))


def test_a_fraction_keeps_at_least_one_sample_of_a_class(rows: Path):
    assert [len(part) for part in kept(rows, seed=0, fraction=0.001)] == [1, 1]


def labels(scenario: Scenario, seed: int) -> torch.Tensor:
    return torch.cat([batch.y for batch in scenario.build(seed=seed)])


def test_a_wrong_label_is_any_other_class():
    clean, dirty = (labels(noisy(load_scenario("split-digits"), share), 0) for share in (0.0, 1.0))
    assert (clean != dirty).all()
    steps = torch.bincount((dirty - clean) % 10, minlength=10) / len(clean)
    assert steps[1:].tolist() == pytest.approx([1 / 9] * 9, abs=0.04)


def test_which_labels_are_wrong_depends_on_the_seed():
    given = []
    for seed in (0, 1):
        stream = noisy(load_scenario("iid-split-digits"), 0.5).build(seed=seed)
        given.append({tuple(x.flatten().tolist()): int(y) for batch in stream for x, y in zip(*batch, strict=True)})
    assert given[0].keys() == given[1].keys()
    differing = sum(given[0][x] != y for x, y in given[1].items()) / len(given[0])
    assert 0.5 < differing < 0.9


def test_training_images_are_turned_as_their_subset_says():
    stages = [{"subsets": [{"dataset": "digits", "classes": [3], "rotation": turn}], "epochs": 1} for turn in (0, 90)]
    stream = Scenario(name="a", stages=stages).build()
    x = torch.cat([batch.x for batch in stream])
    n = stream.stage_samples[0]
    turned_by_hand, turned = torch.rot90(x[:n], 1, (2, 3)).flatten(1), x[n:].flatten(1)
    nearest = (turned_by_hand[:, None] - turned[None]).abs().amax(2).min(1)
    assert nearest.values.max() <= 1.01 / 255
    assert len(nearest.indices.unique()) == n


@pytest.mark.parametrize("size", [100_000, 10**9, 10**30])
def test_images_larger_than_the_memory_are_refused_before_they_are_made(size):
    scenario = Scenario(name="a", stages=[{"subsets": [{"dataset": "digits"}], "epochs": 1}], transform={"size": size})
    with pytest.raises(ConfigError, match=f"transform.size={size} makes .* bytes"):
        scenario.build()


def test_images_are_measured_by_the_numbers_that_make_them(monkeypatch):
    monkeypatch.setattr(pool, "memory_limit", lambda: 2_000_000)  # 1.5 million bytes, resized as eight times as many
    scenario = Scenario(name="a", stages=[{"subsets": [{"dataset": "digits"}], "epochs": 1}], transform={"size": 32})
    with pytest.raises(ConfigError, match=r"transform\.size=32 makes 1\d{7} bytes"):
        scenario.build()
