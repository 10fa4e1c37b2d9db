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
    assert learner.arrivals.n_waiting == 1
    learner.catch_up()
    assert learner.counts.sum().item() + len(learner.memory) == before + 1
    assert learner.describe()["n_set_aside"] == 1


def test_rows_are_shown_to_the_watch_and_counted():
    learner, without = learned(n_exemplars=40), learned()
    learner.finish()
    assert learner.watch.n_rows == 40
    assert learner.footprint().memory_samples == without.footprint().memory_samples + 40


def test_rows_wait_for_a_fifth_of_a_memory_and_are_kept_on_the_way():
    learner = learned()
    n, (x, y) = learner.counts.sum().item() + len(learner.memory), (torch.zeros(1, 2), torch.tensor([1]))
    for i in range(1, 10):
        learner.learn(x, y)
        assert learner.arrivals.n_waiting == i
    other = CNDPM(learner.settings, input_shape=(2,))
    other.load_state_dict(learner.state_dict())
    for one in (learner, other):
        one.learn(x, y)
        assert one.arrivals.n_waiting == 0
        assert one.counts.sum().item() + len(one.memory) == n + 10
    assert torch.equal(learner.counts, other.counts)
    assert torch.equal(learner.predict_log_proba(torch.eye(2)), other.predict_log_proba(torch.eye(2)))


def test_before_the_first_expert_no_row_waits():
    learner = CNDPM(CNDPMSettings(memory_size=50), input_shape=(2,))
    learner.learn(torch.randn(3, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 0]))
    assert learner.arrivals.n_waiting == 0 and len(learner.memory) == 3
