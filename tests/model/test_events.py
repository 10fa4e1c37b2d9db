"""The log of a mixture: what is reported, when, and that it is part of the state."""

import numpy as np
import torch

from cndpm.model.cndpm import CNDPM
from cndpm.model.events import Event, EventLog
from cndpm.model.settings import CNDPMSettings


def blobs(*centres, n=100, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.cat([torch.randn(n, 3, generator=generator) + centre for centre in centres])


def learner_on(x, *, target="none", batch_size=10, **settings):
    learner = CNDPM(CNDPMSettings(memory_size=50, target=target, **settings), input_shape=(3,))
    learner.learn_block(x, None, batch_size)
    return learner


def kinds(learner):
    return [(event.kind, event.expert) for event in learner.events.events]


def test_a_founding_is_logged_with_the_number_of_samples_learned_by_then():
    learner = learner_on(blobs(0, 30))
    assert learner.n_experts == 2
    first, second = learner.events.events
    assert first == Event(50, "founded", 0)
    assert second.kind == "founded" and second.expert == 1 and 150 <= second.sample <= 160


def test_an_expert_that_nothing_reached_for_a_while_returns():
    learner = learner_on(blobs(0, 30, n=400))
    assert kinds(learner) == [("founded", 0), ("founded", 1)]
    learner.learn_block(blobs(0, n=100, seed=1), None, 10)
    assert kinds(learner)[2:] == [("returned", 0)]
    assert 800 < learner.events.events[2].sample <= 840


def test_experts_that_take_turns_do_not_return():
    x = blobs(0, 30, n=300)
    learner = learner_on(torch.cat([x, x[torch.randperm(600, generator=torch.Generator().manual_seed(2))]]))
    assert [kind for kind, _ in kinds(learner)].count("returned") <= 1  # the first, at the end of the second's stage


def test_merges_are_logged_in_the_numbering_of_their_moment():
    log = EventLog()
    log.follow(n_experts=3)
    log.merge(0, 2)
    log.drop(1)
    assert log.events[3:] == [Event(0, "merged", 0, 2), Event(0, "dropped", 1)]
    assert len(log.state_dict()["share"]) == 1


def test_pruning_reports_every_merge():
    learner = learner_on(blobs(0, 0.1, n=200), log_alpha=1e4)
    n_experts, n_events = learner.n_experts, len(learner.events.events)
    merges = learner.prune(blobs(0), threshold=-1.0)
    assert merges and learner.n_experts == n_experts - len(merges)
    merged = learner.events.events[n_events:]
    assert [event.kind for event in merged] == ["merged"] * len(merges)
    assert all(event.sample == 400 for event in merged)


def test_the_log_does_not_depend_on_how_a_stream_is_cut():
    x = torch.cat([blobs(0, 30, n=300), blobs(0, n=100, seed=1)])
    whole, cut = learner_on(x), learner_on(x[:310])
    for start in range(310, len(x), 10):
        cut.learn_block(x[start : start + 10], None, 10)
    assert whole.events.events == cut.events.events


def test_a_learner_that_was_loaded_goes_on_with_its_log():
    x = torch.cat([blobs(0, 30, n=300), blobs(0, n=100, seed=1)])
    whole, half = learner_on(x), learner_on(x[:500])
    loaded = CNDPM(half.settings, input_shape=(3,))
    loaded.load_state_dict(half.state_dict())
    loaded.learn_block(x[500:], None, 10)
    assert loaded.events.events == whole.events.events
    mine, theirs = loaded.events.state_dict(), whole.events.state_dict()
    assert mine["events"] == theirs["events"] and torch.equal(mine["share"], theirs["share"])
    assert torch.equal(mine["absent"], theirs["absent"])


def test_shares_follow_the_samples_whatever_the_batch():
    one, many = EventLog(), EventLog()
    for log in (one, many):
        log.follow(n_experts=2)
    one.learned = [(20, np.array([20.0, 0.0]))]
    many.learned = [(n, np.array([1.0, 0.0])) for n in range(1, 21)]
    for log in (one, many):
        log.follow(n_experts=2)
    np.testing.assert_allclose(one.state_dict()["share"], many.state_dict()["share"])


def test_a_log_on_a_stream_without_end_keeps_the_latest_thousand_events():
    log = EventLog()
    log.follow(n_experts=2)
    log.learned = [(1000 * n, np.roll([300.0, 0.0], n)) for n in range(1, 1500)]
    log.follow(n_experts=2)
    assert len(log.events) == len(log.state_dict()["events"]) == 1000
    assert log.events[-1].sample == 1499 * 1000 and log.events[0].sample == 500 * 1000


def follow(log: EventLog, n: int, expert: int, n_experts: int = 2) -> None:
    """Has one expert learn n samples, one after another."""
    for _ in range(n):
        log.n_samples += 1
        log.learned.append((log.n_samples, np.eye(n_experts)[expert]))
    log.follow(n_experts)


def test_an_expert_returns_after_two_hundred_samples_away():
    for n_away, n_returns in ((190, 0), (400, 1)):
        log = EventLog()
        log.follow(2)
        follow(log, 300, 0)
        follow(log, n_away, 1)
        follow(log, 300, 0)
        assert [event.expert for event in log.events if event.kind == "returned"].count(0) == n_returns


def test_an_expert_is_away_once_its_share_is_below_a_twentieth():
    """At a tenth of all samples it is neither there nor away, however long that lasts."""
    log = EventLog()
    log.follow(2)
    for _ in range(200):
        log.n_samples += 10
        log.learned.append((log.n_samples, np.array([1.0, 9.0])))
    log.follow(2)
    follow(log, 300, 0)
    assert [event.expert for event in log.events if event.kind == "returned"] == []


def test_shares_of_the_experts_that_stay_are_their_own_after_one_goes():
    log = EventLog()
    log.follow(3)
    follow(log, 30, 1, n_experts=3)
    follow(log, 10, 2, n_experts=3)
    before = log.state_dict()["share"].tolist()
    log.merge(1, 0)
    assert log.state_dict()["share"].tolist() == [before[0], before[2]]
