"""The reservoir is a uniform sample of whatever has passed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from cndpm.baselines.shared.replay import ReplayMemory, ReplaySettings
from cndpm.experiments.learners import LEARNERS
from cndpm.learner import Footprint

CPU = torch.device("cpu")


def fill(capacity: int, batches: list[int], seed: int) -> ReplayMemory:
    memory = ReplayMemory(capacity, torch.Generator().manual_seed(seed), device=CPU)
    start = 0
    for n in batches:
        memory.add(x=torch.arange(start, start + n))
        start += n
    return memory


def test_every_sample_of_the_stream_is_kept_equally_often():
    n_runs, capacity, n_stream = 4000, 5, 20
    kept = torch.cat([fill(capacity, [7, 1, 7, 5], seed).rows["x"] for seed in range(n_runs)])
    counts = torch.bincount(kept, minlength=n_stream)
    assert counts.sum() == n_runs * capacity
    assert chisquare(counts.numpy()).pvalue > 1e-3


@settings(deadline=None)
@given(
    capacity=st.integers(1, 12),
    batches=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    seed=st.integers(0, 2**32),
)
def test_memory_holds_distinct_samples_of_the_stream_up_to_its_capacity(capacity: int, batches: list[int], seed: int):
    memory = fill(capacity, batches, seed)
    kept = memory.rows["x"].tolist()
    assert len(kept) == len(set(kept)) == min(capacity, sum(batches))
    assert set(kept) <= set(range(sum(batches)))
    assert memory.n_seen == sum(batches)


def test_a_sample_larger_than_the_memory_is_the_whole_memory():
    memory = fill(6, [4], seed=0)
    assert sorted(memory.sample(50)["x"].tolist()) == [0, 1, 2, 3]


def test_a_shrunk_memory_goes_on_as_a_uniform_sample_of_all_that_passed():
    kept = []
    for seed in range(2000):
        memory = fill(8, [12], seed)
        memory.shrink(3)
        assert len(memory) == memory.capacity == 3
        memory.add(x=torch.arange(12, 15))
        kept.append(memory.rows["x"])
        assert len(set(kept[-1].tolist())) == 3
    assert chisquare(torch.bincount(torch.cat(kept), minlength=15).numpy()).pvalue > 1e-3


def test_footprint_counts_samples_and_bytes_of_all_columns():
    memory = ReplayMemory(10, torch.Generator(), device=CPU)
    memory.add(x=torch.rand(3, 2, 2), y=torch.zeros(3, dtype=torch.int64))
    assert memory.footprint() == Footprint(0, 0, memory_samples=3, memory_bytes=3 * (4 * 4 + 8))


def test_rows_that_are_drawn_are_different_and_each_as_likely_as_the_others():
    memory = fill(8, [8], seed=0)
    drawn = [memory.sample(3)["x"] for _ in range(2000)]
    assert all(len(set(rows.tolist())) == 3 for rows in drawn)
    assert chisquare(torch.bincount(torch.cat(drawn), minlength=8).numpy()).pvalue > 1e-3


def test_columns_of_a_sample_stay_together():
    memory = ReplayMemory(5, torch.Generator().manual_seed(0), device=CPU)
    for start in range(0, 40, 4):
        memory.add(x=torch.arange(start, start + 4.0), y=torch.arange(start, start + 4))
    for rows in (memory.rows, memory.sample(3), memory.take(torch.tensor([4, 0]))):
        assert torch.equal(rows["x"].long(), rows["y"])


def test_of_two_samples_of_one_batch_that_draw_one_place_the_later_stays():
    """As if they had come one by one; the draws are those of the same seed."""
    for seed in range(20):
        together = fill(3, [3, 30], seed)
        draws = torch.Generator().manual_seed(seed)
        torch.rand(3, generator=draws, dtype=torch.float64)
        places = (torch.rand(30, generator=draws, dtype=torch.float64) * torch.arange(4, 34)).long()
        kept = [0, 1, 2]
        for number, place in enumerate(places.tolist(), start=3):
            if place < 3:
                kept[place] = number
        assert together.rows["x"].tolist() == kept


def test_a_cleared_memory_counts_anew():
    memory = fill(4, [9], seed=0)
    memory.clear()
    assert (len(memory), memory.n_seen, memory.rows) == (0, 0, {})
    memory.add(x=torch.arange(3))
    assert memory.rows["x"].tolist() == [0, 1, 2]


def test_shrinking_to_more_than_is_there_loses_nothing_and_never_grows():
    memory = fill(6, [3], seed=0)
    memory.shrink(4)
    assert memory.rows["x"].tolist() == [0, 1, 2]
    memory.shrink(9)
    memory.add(x=torch.arange(3, 9))
    assert len(memory) == memory.capacity == 4


def test_a_memory_comes_back_from_its_state_and_goes_on_alike():
    memory, other = fill(4, [9], seed=0), fill(2, [2], seed=0)
    other.load_state_dict(memory.state_dict())
    other.generator.set_state(memory.generator.get_state())
    for each in (memory, other):
        each.add(x=torch.arange(100, 105))
    assert torch.equal(memory.rows["x"], other.rows["x"])
    assert memory.n_seen == other.n_seen == 14


def test_drawn_rows_are_copies():
    memory = fill(4, [4], seed=0)
    memory.sample(4)["x"].fill_(9)
    assert memory.rows["x"].tolist() == [0, 1, 2, 3]


def test_as_many_are_replayed_as_the_batch_unless_a_number_was_given():
    assert [ReplaySettings(replay_batch=asked).n_replayed(7) for asked in (None, 3)] == [7, 3]


REPLAYING = [name for name, learner in LEARNERS.items() if issubclass(learner.Settings, ReplaySettings)]


@pytest.mark.parametrize("name", REPLAYING)
def test_augmentation_changes_what_every_learner_with_a_replay_memory_answers(name):
    x, y = torch.rand(12, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3
    answers = []
    for augmentation in ("none", "shift"):
        chosen = LEARNERS[name].Settings.model_validate({"hidden": 8, "memory_size": 8, "augmentation": augmentation})
        learner = LEARNERS[name](chosen, input_shape=(1, 8, 8), n_classes=3, seed=0)
        for rows in (slice(0, 6), slice(6, 12)):
            learner.learn(x[rows], y[rows])
        answers.append(learner.predict_log_proba(x))
    assert not torch.allclose(*answers)
