"""Notes of several learned levels, joined and united."""

import math

import pytest
import torch
from benchmarks.merging import merge

from cndpm.model.cndpm import CNDPM
from cndpm.model.joined_levels import joined_levels, united_levels
from cndpm.model.learned_level import LearnedLevel
from cndpm.model.merging import with_same_representation
from cndpm.model.settings import CNDPMSettings


def state(*margins: float, strange: tuple[float, ...] = ()) -> dict:
    """A level of one expert with some margins, and the latest samples of label 4."""
    empty = LearnedLevel(capacity=20).state_dict()
    record = torch.full((1, 20), math.nan, dtype=torch.float64)
    record[0, -len(margins) :] = torch.tensor(margins, dtype=torch.float64)
    by_label = {"4": torch.tensor(strange, dtype=torch.float64)} if strange else {}
    levels = torch.zeros(3, 1, dtype=torch.float64)
    return {**empty, "record": {"values": record, "levels": levels, "n_unmeasured": 0}, "by_label": by_label}


def test_what_was_strange_to_one_model_is_forgotten_first():
    joined = joined_levels(state(1.0, strange=(0.0, 1.0)), state(2.0, strange=(1.0, 0.0, 0.0)))
    assert joined["by_label"]["4"].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_margins_move_by_what_their_expert_gains_when_it_becomes_part_of_a_group():
    joined = joined_levels(state(1.0, 2.0), state(30.0))
    united = united_levels(joined, [[0, 1]], torch.tensor([0.5, 10.0], dtype=torch.float64))
    record = united["record"]["values"][0]
    assert sorted(record[~record.isnan()].tolist()) == [1.5, 2.5, 40.0]


def test_an_expert_gains_the_logarithm_of_its_groups_samples_over_its_own(monkeypatch):
    x, y = torch.randn(90, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(90, dtype=torch.long)
    first = CNDPM(CNDPMSettings(memory_size=20, features="identity"), input_shape=(3,))
    first.learn_block(x[:60], y[:60], 10)
    second = with_same_representation(first)
    second.learn_block(x[60:], y[60:], 10)
    second.consolidate()
    noted, unite = [], LearnedLevel.unite
    monkeypatch.setattr(LearnedLevel, "unite", lambda self, g, gains: (noted.append(gains), unite(self, g, gains))[1])
    merged = merge([first, second])
    n = torch.tensor([float(first.counts.sum()), float(second.counts.sum())])
    assert merged.n_experts == 1
    assert noted[0].tolist() == pytest.approx((n.sum() / n).log().tolist())
