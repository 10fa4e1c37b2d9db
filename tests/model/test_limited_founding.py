"""The limit on experts, founding by founding."""

import warnings

import pytest
import torch

from cndpm.devices import total_memory
from cndpm.experts.chunks import Samples
from cndpm.model.cndpm import CNDPM
from cndpm.model.memory import SampleBatch
from cndpm.model.settings import CNDPMSettings


def learner_of(*centres: float, **changes) -> CNDPM:
    """One expert about each centre, as long as there may be more."""
    settings = {"memory_size": 20, "features": "identity", "log_alpha": -5.0, **changes}
    learner = CNDPM(CNDPMSettings(**settings), input_shape=(2,))
    learner.meet(1)
    for centre in centres:
        found(learner, centre)
    return learner


def found(learner: CNDPM, centre: float) -> None:
    x = torch.randn(20, 2, generator=torch.Generator().manual_seed(int(centre))) + centre
    learner.memory.add(SampleBatch(Samples(x), torch.zeros(20, dtype=torch.long)))
    learner.consolidate()


def test_at_the_limit_the_two_most_similar_experts_become_one():
    learner = learner_of(0.0, 40.0, 80.0, max_experts=3)
    with pytest.warns(UserWarning, match="the two most similar"):
        found(learner, 42.0)
    assert learner.counts.tolist() == [20.0, 40.0, 20.0]
    assert learner.events.events[-1].kind == "merged"


def test_where_no_more_are_founded_the_memory_is_learned_by_those_there_are():
    learner = learner_of(0.0, 40.0, max_experts=2, at_limit="refuse")
    with pytest.warns(UserWarning, match="no more experts are founded"):
        found(learner, 42.0)
    assert learner.counts.tolist() == pytest.approx([20.0, 40.0])
    assert len(learner.memory) == 0


def test_the_limit_warns_once():
    learner = learner_of(0.0, 40.0, max_experts=2)
    with pytest.warns(UserWarning):
        found(learner, 42.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found(learner, 44.0)


def test_without_a_number_experts_may_take_half_of_the_memory_at_twenty_four_bytes_a_number():
    learner = learner_of(0.0, 40.0)
    numbers, limit = learner.bank.footprint().n_numbers_kept, learner.founding
    assert limit._budget == total_memory(torch.device("cpu")) / 2
    for budget, is_reached in ((24 * numbers * 3 / 2 - 1, True), (24 * numbers * 3 / 2 + 1, False)):
        limit._budget = budget
        assert limit.is_reached(learner.bank) is is_reached


def test_novelty_forgets_the_expert_that_goes():
    learner = learner_of(0.0, 40.0, 80.0, max_experts=3, log_alpha="auto")
    with pytest.warns(UserWarning, match="the two most similar"):
        found(learner, 43.0)
    assert learner.n_experts == learner.novelty.n_judged == 3
