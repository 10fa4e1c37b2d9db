"""Pools of labels: any order, any numbering, any place to stop, nothing kept where nothing may be."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.experts.pool import ClassPool
from cndpm.experts.pool.kept_rows import N_NEIGHBOUR_MEMBERS
from cndpm.experts.pool.mix import TEMPERATURES
from cndpm.state import StateError

few = settings(max_examples=6)


def rows(n, seed=0, n_labels=3, d=3):
    """Rows around a mean of every label."""
    rng = np.random.default_rng(seed)
    means = 2.5 * np.random.default_rng(99).normal(size=(n_labels, d))
    y = rng.integers(n_labels, size=n)
    return means[y] + rng.normal(size=(n, d)), y


def learned(x, y, pool=None, batch=10, **chosen):
    pool = pool or ClassPool(x.shape[1], **chosen)
    for start in range(0, len(y), batch):
        pool.learn(x[start : start + batch], y[start : start + batch])
    return pool


def reversing(n=600, at=400, seed=0):
    """Rows whose rule is reversed at a sample."""
    x = np.random.default_rng(seed).normal(size=(n, 2))
    y = (x[:, 0] > 0).astype(int)
    y[at:] = 1 - y[at:]
    return x, y


def accuracy(pool, x, y, when="now"):
    return float((pool.answer(x, when).argmax(axis=1) == y).mean())


@settings(max_examples=3)
@given(st.integers(0, 100))
def test_rows_sorted_by_label_teach_what_shuffled_rows_do(seed):
    x, y = rows(400, seed=seed)
    order, (asked, truth) = np.argsort(y, kind="stable"), rows(300, seed=seed + 1)
    by_label, shuffled = learned(x[order], y[order]), learned(x, y)
    for when in ("now", "any"):
        assert accuracy(by_label, asked, truth, when) > accuracy(shuffled, asked, truth, when) - 0.04


@few
@given(st.permutations(range(3)), st.integers(0, 100))
def test_the_numbers_of_labels_do_not_matter(places, seed):
    x, y = rows(150, seed=seed)
    asked, places = rows(30, seed=1)[0], np.array(places)
    plain, other = learned(x, y), learned(x, places[y])
    for when in ("now", "next", "any"):
        np.testing.assert_allclose(other.answer(asked, when)[:, places], plain.answer(asked, when), atol=0.02)


@few
@given(st.permutations(range(3)))
def test_relabelling_permutes_answers_and_learning_goes_on(places):
    x, y = rows(150)
    asked, places, pool = rows(30, seed=1)[0], np.array(places), learned(x, y)
    before = {when: pool.answer(asked, when) for when in ("now", "next", "any")}
    pool.relabel(places)
    for when, told in before.items():
        np.testing.assert_allclose(pool.answer(asked, when)[:, places], told, atol=1e-9)
    more, labels = rows(100, seed=2)
    assert accuracy(learned(more, places[labels], pool), x, places[y]) > 0.8


def test_there_is_room_for_labels_that_never_came_and_none_is_answered():
    x, y = rows(150)
    pool = learned(x, y)
    pool.relabel(np.array([3, 0, 4, 1, 2]))
    told = pool.answer(x, "any")
    assert told.shape == (150, 5) and set(told.argmax(axis=1)) == {0, 3, 4}


def assert_resumes(x, y, stop, **chosen):
    half = learned(x[:stop], y[:stop], **chosen)
    resumed = ClassPool(x.shape[1], **chosen)
    resumed.load_state_dict(half.state_dict())
    whole = learned(x[stop:], y[stop:], half)
    learned(x[stop:], y[stop:], resumed)
    asked = np.random.default_rng(5).normal(size=(40, x.shape[1]))
    for when in ("now", "next", "any"):
        np.testing.assert_array_equal(resumed.answer(asked, when), whole.answer(asked, when))
    assert resumed.events == whole.events and resumed.n_rules == whole.n_rules
    return whole


@pytest.mark.parametrize("far", [12.0, 50.0, 1e3])
@pytest.mark.parametrize("rule", [1, -1])
def test_rows_from_far_away_are_told_apart_and_nothing_near_is_lost(far, rule):
    parts = []
    for seed, where, sign in ((0, 0.0, 1), (1, far, rule)):
        x = np.random.default_rng(seed).normal(size=(600, 3))
        parts.append((x + where, (sign * x[:, 0] > 0).astype(int)))
    pool = ClassPool(3)
    for x, y in parts:
        learned(x[:400], y[:400], pool)
    for x, y in parts:
        assert accuracy(pool, x[400:], y[400:]) > 0.85


def test_rows_beyond_reach_fit_representations_anew_and_rows_within_do_not():
    x, y = rows(1200)
    pool = learned(x[:600], y[:600])
    maps = pool._maps
    assert learned(x[600:800], y[600:800], pool)._maps is maps
    assert learned(x[800:] + 50, y[800:], pool)._maps is not maps


def test_a_few_wild_rows_and_columns_that_are_seldom_set_fit_nothing_anew(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rows(1500, d=40)
    x[:, 5:] = rng.random(size=(1500, 35)) < 0.01  # far out wherever they are not 0, in a third of the rows
    x[::40] *= 1e6
    pool, fits = learned(x[:530], y[:530]), []
    monkeypatch.setattr(pool, "_fit", lambda: fits.append(pool.n_seen))
    learned(x[530:], y[530:], pool)
    assert fits == []


@few
@given(st.integers(1, 59))
def test_a_pool_resumes_to_the_bit_wherever_it_is_stopped(stop):
    """The reversal founds a rule at sample 430 or so, and representations are fitted at 5, 20, 100 and 500 rows."""
    assert assert_resumes(*reversing(), 10 * stop).n_rules == 2


@pytest.mark.parametrize("stop", [1, 4, 5, 6, 19, 21, 99, 101])
def test_it_resumes_between_fits(stop):
    assert_resumes(*rows(130), stop)


@pytest.mark.parametrize("stop", [3, 20, 110])
def test_it_resumes_where_no_rows_are_kept(stop):
    assert_resumes(*rows(150), stop, n_rows=0)


def test_it_resumes_where_rows_have_made_way():
    assert_resumes(*rows(300), 200, n_rows=60)


@pytest.mark.parametrize("stop", [320, 500])
def test_it_resumes_where_labels_come_in_runs(stop):
    x, y = rows(500)
    order = np.argsort(y, kind="stable")
    pool = assert_resumes(x[order], y[order], stop)
    assert pool._kept_weights is not None


def test_a_reversed_rule_is_founded_and_returns():
    x, y = reversing(n=1000, at=400)
    y[700:] = 1 - y[700:]
    pool = learned(x, y)
    assert pool.n_rules == 2
    assert [event[1:] for event in pool.events[:2]] == [("founded", 1), ("returned", 0)]
    assert 400 < pool.events[0][0] < 480 and 700 < pool.events[1][0] <= 730
    assert accuracy(pool, x[700:], y[700:]) > 0.9


def test_recent_models_answer_after_a_change_and_rules_where_one_returns():
    x, y = reversing(n=1000, at=400)
    y[700:] = 1 - y[700:]
    pool, told = ClassPool(2), {}
    for start in range(0, 1000, 10):
        pool.learn(x[start : start + 10], y[start : start + 10])
        told[start + 10] = pool.shares
    assert all(sum(shares.values()) == pytest.approx(1) and min(shares.values()) >= 0 for shares in told.values())
    assert told[420]["recent models"] > 0.9 and told[420]["rules"] < 0.1 and told[720]["rules"] > 0.3


def test_where_trees_were_best_and_are_forgotten_the_others_answer():
    x, y = rows(400)
    pool = learned(x, y)
    at = pool._n_members - N_NEIGHBOUR_MEMBERS - 1
    for mix in (pool._now, pool._next):
        mix.scores[:] = -500.0
        mix.scores.reshape(2, len(TEMPERATURES), -1)[..., at] = 0.0
        mix.load_state_dict(mix.state_dict())
    pool._begin(0)
    pool._asked = None
    for when in ("now", "next"):
        assert accuracy(pool, *rows(300, seed=1), when) > 0.9


def test_while_it_is_challenged_a_rule_learns_nothing_that_it_knew():
    x, y = rows(400)
    pool = learned(x, y)
    pool._rules.lead = 5.0
    before = [(moments.means[: moments.n_recent].copy(), moments.means[-1].copy()) for moments in pool._moments]
    pool.learn(x[:10] + 1, y[:10])
    for moments, (recent, rule) in zip(pool._moments, before, strict=True):
        assert (moments.means[: moments.n_recent] != recent).any()
        np.testing.assert_array_equal(moments.means[-1], rule)


@pytest.mark.parametrize(("n", "at"), [(1000, 750), (1000, 300)])
def test_for_any_time_rules_count_as_often_as_each_held(n, at, monkeypatch):
    x, y = reversing(n=n, at=at)
    pool, asked = learned(x, y), np.random.default_rng(1).normal(size=(300, 2))
    plain, weights = pool._likely, []
    monkeypatch.setattr(pool, "_likely", lambda *of: weights.append(of[-1]) or plain(*of))
    first = np.exp(pool.answer(asked, "any"))[np.arange(300), (asked[:, 0] > 0).astype(int)].mean()
    assert pool.n_rules == 2
    assert (first > 0.5) == (2 * at > n) and accuracy(pool, x[at:], y[at:]) > 0.9
    np.testing.assert_allclose(weights[0], [at / n, 1 - at / n], atol=0.06)


@pytest.mark.parametrize("first", [1, 10, 200])
def test_without_rows_it_keeps_none_and_still_learns(first):
    x, y = rows(300)
    pool = ClassPool(3, n_rows=0)
    pool.learn(x[:first], y[:first])
    learned(x[first:], y[first:], pool)
    assert len(pool.rows) == 0 and pool.is_ready and pool.n_seen == 300
    assert accuracy(pool, *rows(300, seed=1)) > 0.85
    assert pool.answer(x[:5], "any").shape == (5, 3)


@pytest.mark.parametrize("n_rows", [1, 7, 64])
def test_no_more_rows_are_kept_than_allowed_however_large_the_first_batch(n_rows):
    x, y = rows(300)
    pool = learned(x, y, batch=300, n_rows=n_rows)
    assert len(pool.rows) == max(5, n_rows) and pool.is_ready
    assert accuracy(pool, *rows(300, seed=1)) > 0.7


@pytest.mark.parametrize("n_rows", [1, 7, 64])
def test_models_learn_all_rows_of_a_first_batch_that_is_larger_than_what_is_kept(n_rows):
    x, y = rows(300)
    room = max(5, n_rows)
    whole, cut = learned(x, y, batch=300, n_rows=n_rows), learned(x[:room], y[:room], batch=room, n_rows=n_rows)
    cut.learn(x[room:], y[room:])
    for when in ("now", "next", "any"):
        np.testing.assert_array_equal(whole.answer(x, when), cut.answer(x, when))
    assert whole.counts.tolist() == np.bincount(y).tolist()
    n_learned = [moments.n[-1].sum() for moments in whole._moments]
    assert n_learned == [300] * 3


def test_answers_change_nothing_of_what_is_learned():
    x, y = reversing()
    silent, asked = learned(x, y), ClassPool(2)
    for start in range(0, 600, 10):
        part = slice(start, start + 10)
        if asked.is_ready:
            for when in ("any", "next", "now"):
                asked.answer(x[part], when)
                asked.answer(x[:3], when, since=[0, 1])
        asked.learn(x[part], y[part])
    for when in ("now", "next", "any"):
        np.testing.assert_array_equal(silent.answer(x[:50], when), asked.answer(x[:50], when))


@pytest.mark.parametrize("when", ["now", "next", "any"])
def test_answers_are_log_probabilities_whatever_the_time(when):
    x, y = rows(200)
    told = learned(x, y).answer(rows(1100, seed=2)[0], when)
    assert told.shape == (1100, 3)
    np.testing.assert_allclose(np.exp(told).sum(axis=1), 1, atol=1e-4)


def test_the_label_before_tells_the_next_one_and_no_other():
    x = np.random.default_rng(0).normal(size=(600, 2))
    y = np.arange(600) % 2  # x tells nothing
    pool = learned(x, y, batch=1)
    assert np.exp(pool.answer(x[:1], "next"))[0, 0] > 0.9
    assert np.exp(pool.answer(x[:1], "next", since=[0]))[0, 1] > 0.9
    assert 0.3 < np.exp(pool.answer(x[:50])).mean(axis=0)[0] < 0.7


def test_more_labels_than_it_can_keep_are_given_up_for_good():
    x, y = rows(100)
    pool = learned(x, y)
    pool.learn(x[:1], np.array([256]))
    assert not pool.is_ready and pool.n_labels == 257 and len(pool.rows) == 0 and pool.n_rules == 0
    before = pool.n_numbers_kept
    pool.learn(x[:1], np.array([20_000]))
    assert pool.n_numbers_kept == before and len(pool._dynamics.pairs) == 0  # nothing grows with their square
    resumed = ClassPool(3)
    resumed.load_state_dict(pool.state_dict())
    for one in (pool, resumed):
        learned(x, y, one)
        one.relabel(np.arange(20_001)[::-1].copy())
        one.refresh()
        assert not one.is_ready and len(one.rows) == 0
    assert resumed.n_seen == pool.n_seen == 202


def test_extending_is_learning_the_rows_of_the_other():
    x, y = rows(240)
    other, pool, plain = learned(x[120:], y[120:]), learned(x[:120], y[:120]), learned(x, y)
    pool.extend(other)
    assert pool.n_seen == 240
    for when in ("now", "next", "any"):
        np.testing.assert_array_equal(pool.answer(x[:40], when), plain.answer(x[:40], when))


def test_extending_counts_what_the_other_no_longer_keeps():
    x, y = rows(300)
    pool, other = learned(x[:100], y[:100]), learned(x[100:], y[100:], n_rows=50)
    pool.extend(other)
    np.testing.assert_array_equal(pool.counts, np.bincount(y))


def test_what_is_forgotten_was_as_if_it_had_not_come():
    x, y = rows(200)
    pool, is_gone = learned(x, y), np.zeros(200, bool)
    is_gone[150:] = True
    wrong = y.copy()
    wrong[150:] = (y[150:] + 1) % 3
    misled = learned(x, wrong)
    misled.forget(is_gone)
    np.testing.assert_array_equal(misled.counts, np.bincount(y[:150]))
    assert len(misled.rows) == misled.rows.n == 150
    assert accuracy(misled, x, y) > accuracy(pool, x, y) - 0.03


def test_evidence_goes_back_to_before_rows_that_are_forgotten():
    pool, is_gone = learned(*rows(350)), np.arange(350) >= 300
    scores = [mix.scores.copy() for mix in pool._earlier[0]]
    pool.forget(is_gone)
    for mix, before in zip((pool._now, pool._next), scores, strict=True):
        np.testing.assert_array_equal(mix.scores, before)


@pytest.mark.parametrize("n_left", [0, 3])
def test_a_pool_that_forgets_all_but_a_few_rows_begins_anew(n_left):
    x, y = rows(300)
    pool = learned(x[:100] + 5, 2 - y[:100])
    pool.forget(np.arange(100) >= n_left)
    assert not pool.is_ready and pool.n_seen == len(pool.rows) == n_left
    resumed = ClassPool(x.shape[1])
    resumed.load_state_dict(pool.state_dict())
    for one in (pool, resumed):
        learned(x[100:], y[100:], one)
    np.testing.assert_array_equal(resumed.answer(x, "next"), pool.answer(x, "next"))
    assert np.isfinite(pool.mixing) and accuracy(pool, x[100:], y[100:]) > 0.9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("counts", torch.zeros(7, dtype=torch.float64)),
        ("mixing", 2.0),
        ("n_fits", 6),
        ("n_seen", -1),
        ("maps", None),
        ("moments", []),
        ("moments", None),
        ("kept_weights", torch.ones(3, dtype=torch.float64)),
        ("kept_weights", torch.zeros(51, dtype=torch.float64)),
        ("kept_weights", -torch.ones(51, dtype=torch.float64)),
        ("rules", {}),
        ("rows", None),
        ("mix", {}),
        ("dynamics", []),
    ],
)
def test_a_wrong_state_is_refused(name, value):
    state = learned(*rows(60)).state_dict()
    with pytest.raises(StateError):
        ClassPool(3).load_state_dict({**state, name: value})
    del state[name]
    with pytest.raises(StateError, match=name):
        ClassPool(3).load_state_dict(state)


def test_a_state_with_more_rows_than_allowed_or_other_columns_is_refused():
    state = learned(*rows(60)).state_dict()
    with pytest.raises(StateError, match="at most 20"):
        ClassPool(3, n_rows=20).load_state_dict(state)
    with pytest.raises(StateError):
        ClassPool(4).load_state_dict(state)


def test_rules_that_are_parts_of_one_are_learned_anew_as_one():
    x, y = rows(180)
    pool = learned(x, y)
    pool._rules.found(sample=150)
    for moments in pool._moments:
        moments.add_rule(0)
    pool._rules.events += [(sample, "returned", 0) for sample in (160, 163, 170, 178)]
    learned(*rows(10, seed=1), pool=pool)
    assert pool.n_rules == 1 and pool._rules.held.tolist() == [190]


@pytest.mark.parametrize("when", ["now", "any"])
def test_labels_that_never_came_are_as_unlikely_as_any_can_be(when):
    x, y = rows(150)
    pool = learned(x, y)
    pool.relabel(np.array([3, 0, 4, 1, 2]))
    assert pool.answer(x, when)[:, [1, 2]].max() < -11


@pytest.mark.parametrize("when", ["now", "next", "any"])
def test_where_rows_tell_nothing_labels_are_as_likely_as_they_were_frequent(when):
    rng = np.random.default_rng(0)
    y = (rng.random(600) < 0.1).astype(int)
    pool = learned(rng.normal(size=(600, 3)), y)
    assert np.exp(pool.answer(rng.normal(size=(300, 3)), when))[:, 1].mean() < 0.2


def test_the_latest_labels_count_most_however_rows_are_cut_into_batches():
    x, y = rows(150)
    one, other = (learned(x[5:], y[5:], learned(x[:5], y[:5]), batch=batch) for batch in (145, 1))
    one.refresh()
    other.refresh()
    np.testing.assert_allclose(one.lately, other.lately)


def test_where_labels_come_in_runs_kept_rows_say_who_answers():
    x, y = rows(600)
    order = np.argsort(y, kind="stable")
    pool = learned(x[order], y[order])
    pool.refresh()
    assert pool._is_in_runs
    before = pool.answer(x[:50])
    pool._kept_weights = np.eye(len(pool._kept_weights))[0]
    assert np.abs(pool.answer(x[:50]) - before).max() > 0.1


@pytest.mark.parametrize("seed", [0, 2])
def test_domains_in_turn_found_no_rule_where_the_nearest_rows_know_theirs(seed):
    """The rule is one, but less smooth than models: recent ones are ahead of those that forget nothing, not of rows."""
    rng = np.random.default_rng(seed)
    domains, x = 3 * rng.normal(size=(4, 4)), rng.normal(size=(2000, 4))
    x += domains[np.arange(2000) // 100 % 4]
    y = (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] > 0).astype(int)
    pool = ClassPool(4)
    for start in range(0, 2000, 10):
        pool.learn(x[start : start + 10], y[start : start + 10])
    assert not pool.events
