"""The reservoir is a uniform sample of whatever has passed."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from cndpm.baselines.shared.replay import ReplayMemory

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


def test_shrinking_keeps_every_sample_equally_often():
    kept = []
    for seed in range(3000):
        memory = fill(8, [8], seed)
        memory.shrink(3)
        assert len(memory) == memory.capacity == 3
        kept.append(memory.rows["x"])
    assert chisquare(torch.bincount(torch.cat(kept), minlength=8).numpy()).pvalue > 1e-3


def test_footprint_counts_samples_and_bytes_of_all_columns():
    memory = ReplayMemory(10, torch.Generator(), device=CPU)
    memory.add(x=torch.rand(3, 2, 2), y=torch.zeros(3, dtype=torch.int64))
    kept = memory.footprint()
    assert (kept.memory_samples, kept.memory_bytes) == (3, 3 * (4 * 4 + 8))
