"""Batches on their way to the experts."""

import torch

from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings


def learned(**options) -> CNDPM:
    learner = CNDPM(CNDPMSettings(memory_size=50), input_shape=(2,), **options)
    x = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    learner.learn_block(x, (x[:, 0] > 0).long(), 10)
    return learner


def test_wild_rows_reach_neither_experts_nor_memory():
    learner = learned()
    before = learner.counts.sum().item() + len(learner.memory)
    learner.learn(torch.tensor([[0.0, 1e10], [0.5, 0.5]]), torch.tensor([0, 1]))
    assert learner.counts.sum().item() + len(learner.memory) == before + 1
    assert learner.describe()["n_set_aside"] == 1


def test_rows_are_shown_to_the_watch_and_counted():
    learner, without = learned(n_exemplars=40), learned()
    learner.finish()
    assert learner.watch.n_rows == 40
    assert learner.footprint().memory_samples == without.footprint().memory_samples + 40
