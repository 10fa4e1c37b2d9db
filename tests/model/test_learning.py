"""One batch on its way through the algorithm: routed, learned, remembered, slept on, routed again."""

import pytest
import torch

from cndpm.experts.chunks import Samples
from cndpm.model.cndpm import CNDPM
from cndpm.model.memory import SampleBatch
from cndpm.model.settings import CNDPMSettings


def make(**changes) -> CNDPM:
    settings = {"memory_size": 25, "features": "identity", **changes}
    return CNDPM(CNDPMSettings(**settings), input_shape=(3,))


def rows(n: int, centre: float = 0.0, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(seed)) + centre


def test_new_samples_wait_and_become_an_expert_when_the_memory_is_full():
    learner = make()
    learner.learn(rows(24), torch.zeros(24, dtype=torch.long))
    assert learner.n_experts == 0 and len(learner.memory) == 24
    learner.learn(rows(1, seed=1), torch.zeros(1, dtype=torch.long))
    assert learner.n_experts == 1 and len(learner.memory) == 0


def test_samples_that_find_no_room_are_routed_again_after_the_sleep():
    learner = make(log_alpha=-50.0)
    learner.learn(torch.cat([rows(25), rows(8, seed=1), rows(7, centre=90.0)]), torch.zeros(40, dtype=torch.long))
    assert learner.counts.tolist() == pytest.approx([33.0])
    assert len(learner.memory) == 7


@pytest.fixture
def known() -> CNDPM:
    learner = make()
    learner.learn_block(rows(200), torch.zeros(200, dtype=torch.long), 10)
    assert learner.n_experts == 1
    return learner


def test_novelty_follows_whenever_the_margins_have_moved(known, monkeypatch):
    moved, follow = [], known.novelty.follow
    monkeypatch.setattr(known.novelty, "follow", lambda drift: (moved.append(drift), follow(drift)))
    before = known.bank.ready().n_factorisations
    known.learn_block(rows(100, seed=2), torch.zeros(100, dtype=torch.long), 10)
    assert len(moved) == known.bank.ready().n_factorisations - before > 0


def test_what_waits_is_reviewed_after_a_batch_of_which_nothing_is_new(known, monkeypatch):
    reviews = []
    monkeypatch.setattr(known.founding, "review", lambda *_: reviews.append(len(known.memory)))
    known.learn(rows(5, seed=3), torch.zeros(5, dtype=torch.long))
    assert reviews == []  # nothing waits
    known.memory.add(SampleBatch(Samples(rows(2, centre=50.0)), torch.zeros(2, dtype=torch.long)))
    known.learn(rows(5, seed=4), torch.zeros(5, dtype=torch.long))
    assert reviews == [2]


@pytest.mark.parametrize("target", ["classes", "values"])
def test_classes_take_part_in_routing_and_values_do_not(target, monkeypatch):
    learner, told = make(target=target), []
    y = torch.arange(30) % 2 if target == "classes" else rows(30, seed=1)[:, :1]
    route = learner.novelty.route
    monkeypatch.setattr(learner.novelty, "route", lambda *given: (told.append(given[1]), route(*given))[1])
    learner.learn_block(rows(30), y, 10)
    assert all(labels is None for labels in told) if target == "values" else torch.equal(torch.cat(told)[:20], y[:20])


def test_pairs_that_are_less_than_nine_tenths_similar_are_not_pruned_by_default(monkeypatch):
    learner = make(log_alpha=-5.0)
    for centre in (0.0, 60.0):
        learner.learn_block(rows(25, centre), torch.zeros(25, dtype=torch.long), 5)
    assert learner.n_experts == 2
    for alike, n_merged in ((0.89, 0), (0.91, 1)):
        similar = torch.tensor([[1.0, alike], [alike, 1.0]])
        monkeypatch.setattr("cndpm.model.pruning.similarity", lambda _, similar=similar: similar)
        assert len(learner.prune(rows(10), torch.zeros(10, dtype=torch.long))) == n_merged
