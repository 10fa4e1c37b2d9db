"""Streams of rows whose scale changes: experts, answers and resuming."""

import torch
from benchmarks.merging import merge

from cndpm.model.cndpm import CNDPM
from cndpm.model.merging import with_same_representation
from cndpm.model.settings import CNDPMSettings

SETTINGS = CNDPMSettings(memory_size=100, n_fourier=60)


def domains(factors, n=300, seed=0):
    """Rows of six columns with a linear rule of its own for each scale."""
    generator = torch.Generator().manual_seed(seed)
    rules = torch.randn(len(factors), 6, generator=torch.Generator().manual_seed(7))
    x = torch.randn(len(factors), n, 6, generator=generator)
    y = (torch.einsum("knd,kd->kn", x, rules) > 0).long()
    return (x * torch.tensor(factors)[:, None, None]).flatten(0, 1), y.flatten()


def returning():
    """Rows of two scales that come twice, with the same rule each time."""
    parts = [domains([1.0, 4.0], seed=seed) for seed in (0, 3)]
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])


def learned(x, y, learner=None):
    learner = learner or CNDPM(SETTINGS, input_shape=(6,))
    learner.learn_block(x, y, 10)
    return learner


def test_every_scale_has_an_expert_and_is_answered_for_by_the_rule_that_held_there():
    learner = learned(*domains([1.0, 4.0, 16.0]))
    assert learner.n_experts == 3 and learner.bank.knows.tolist() == torch.eye(3).bool().tolist()
    x, y = domains([1.0, 4.0, 16.0], seed=1)
    hits = (learner.predict_log_proba(x).argmax(dim=1) == y).double().reshape(3, -1).mean(dim=1)
    assert hits.min() > 0.85


def test_a_scale_that_returns_needs_no_other_expert_and_is_not_forgotten():
    learner = learned(*returning())
    assert learner.n_experts == 2 and len(learner.places.pools) == 2
    x, y = domains([1.0, 4.0], seed=1)
    hits = (learner.predict_log_proba(x).argmax(dim=1) == y).double().reshape(2, -1).mean(dim=1)
    assert hits.min() > 0.85


def test_rows_that_spread_no_wider_begin_no_range():
    learner = learned(*domains([1.0, 1.3, 0.5]))
    assert len(learner.bank.ranges) == 1


def test_batches_and_one_block_give_the_same_bits():
    x, y = domains([1.0, 4.0], n=150)
    by_batches = CNDPM(SETTINGS, input_shape=(6,))
    for start in range(0, len(x), 10):
        by_batches.learn(x[start : start + 10], y[start : start + 10])
    asked = domains([1.0, 4.0], n=40, seed=2)[0]
    assert torch.equal(learned(x, y).predict_log_proba(asked), by_batches.predict_log_proba(asked))


def test_stopped_and_resumed_around_a_change_of_scale_gives_the_same_bits():
    x, y = domains([1.0, 4.0], n=150)
    asked = domains([1.0, 4.0], n=40, seed=2)[0]
    whole = learned(x, y).predict_log_proba(asked)
    for stop in (180, 250):
        resumed = CNDPM(SETTINGS, input_shape=(6,))
        resumed.load_state_dict(learned(x[:stop], y[:stop]).state_dict())
        assert torch.equal(learned(x[stop:], y[stop:], resumed).predict_log_proba(asked), whole)


def test_shards_that_met_different_scales_are_merged():
    x, y = domains([1.0, 4.0])
    first = learned(x[:300], y[:300])
    second = learned(x, y, with_same_representation(first))
    both = merge([first, second])
    assert both.n_experts == 2 and sorted(both.bank.knows.tolist()) == [[False, True], [True, False]]
