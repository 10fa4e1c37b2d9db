"""Learners made of parts: state by name, and batches checked before anything changes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from cndpm.baselines.ewc import EWC
from cndpm.baselines.finetune import FineTune
from cndpm.baselines.shared.composed import ClassifierLearner


def make(seed: int = 0) -> EWC:
    return EWC(EWC.Settings(hidden=4), input_shape=(3,), n_classes=2, seed=seed)


def test_a_classifier_answers_with_the_log_softmax_of_its_network():
    learner = make()
    x = torch.rand(4, 3)
    assert isinstance(learner, ClassifierLearner)
    with torch.no_grad():
        torch.testing.assert_close(learner.predict_log_proba(x), F.log_softmax(learner.network(x), dim=1))
    assert not learner.network.training


def test_networks_of_different_seeds_differ():
    x = torch.rand(4, 3)
    assert torch.equal(make(1).predict_log_proba(x), make(1).predict_log_proba(x))
    assert not torch.equal(make(1).predict_log_proba(x), make(2).predict_log_proba(x))


def test_a_state_holds_every_part_by_name_and_one_of_another_kind_is_refused():
    learner = make()
    state = learner.state_dict()
    assert state.keys() == {"random", "trainer", "penalty", "memory"}
    del state["penalty"]
    with pytest.raises(ValueError, match=r"has the parts .*penalty"):
        learner.load_state_dict(state)


def test_a_footprint_counts_network_penalty_and_memory():
    learner = make()
    n = 3 * 4 + 4 + 4 * 4 + 4 + 4 * 2 + 2
    x, y = torch.rand(5, 3), torch.arange(5) % 2
    learner.learn(x, y)
    kept = learner.footprint()
    assert (kept.n_parameters, kept.n_numbers_kept, kept.memory_samples) == (n, n, 5)
    learner.end_task()
    kept = learner.footprint()
    assert (kept.n_parameters, kept.n_numbers_kept, kept.memory_samples) == (n, 3 * n, 0)


def test_labels_for_a_stream_without_are_refused():
    learner = FineTune(FineTune.Settings(hidden=4), input_shape=(3,))
    with pytest.raises(ValueError, match="made for no labels; got labels"):
        learner.learn(torch.rand(4, 3), torch.zeros(4, dtype=torch.int64))


def test_a_learner_goes_on_from_a_state_as_the_one_it_was_taken_of():
    learner, other = make(1), make(2)
    x, y = torch.rand(5, 3, generator=torch.Generator().manual_seed(0)), torch.arange(5) % 2
    learner.learn(x, y)
    learner.end_task()
    other.load_state_dict(learner.state_dict())
    for each in (learner, other):
        each.learn(x, 1 - y)
    assert torch.equal(learner.predict_log_proba(x), other.predict_log_proba(x))
