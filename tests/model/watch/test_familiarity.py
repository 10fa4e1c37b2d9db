"""Novelty is minus the log of a p-value: against counting by hand, and the level against its inverse."""

import math

import numpy as np
import pytest

from cndpm.model.watch.familiarity import Familiarity


def test_novelty_is_the_negative_log_of_the_share_that_is_as_strange():
    known = np.random.default_rng(0).normal(size=199)
    scores = known[[0, 50, 120]]
    shares = [(known <= score).sum() / 200 for score in scores]
    np.testing.assert_allclose(np.exp(-Familiarity(known).novelty(scores)), shares)


def test_a_new_value_of_the_same_kind_exceeds_the_level_as_often_as_asked():
    rng = np.random.default_rng(1)
    alarms = []
    for _ in range(200):
        values = rng.normal(size=300)
        alarms.append((rng.normal(size=300) < Familiarity(values).level(0.05)).mean())
    assert np.mean(alarms) == pytest.approx(0.05, abs=0.003)


@pytest.mark.parametrize("rate", [0.3, 0.05, 0.011, 0.001, 1e-6])
def test_the_level_has_the_novelty_of_its_rate(rate):
    familiarity = Familiarity(np.random.default_rng(0).normal(size=300))
    level = familiarity.level(rate)
    assert familiarity.novelty(np.array([level]))[0] == pytest.approx(-math.log(rate))


def test_novelty_never_falls_as_the_density_falls():
    known = np.random.default_rng(0).normal(size=100)
    novelty = Familiarity(known).novelty(np.linspace(10, -50, 500))
    assert (np.diff(novelty) >= 0).all() and novelty[0] == 0 and np.isfinite(novelty).all()
    assert (np.diff(Familiarity(known).novelty(np.linspace(-5, -50, 100))) > 0).all()


def test_the_latest_count_alone_where_they_look_stranger():
    rng = np.random.default_rng(0)
    earlier, later = rng.normal(size=(2, 500))
    drifting = Familiarity(np.concatenate([earlier, later - 1]))
    assert drifting.level(0.05) == Familiarity(later - 1).level(0.05)
    steady, better = Familiarity(np.concatenate([earlier, later])), Familiarity(np.concatenate([earlier, later + 1]))
    assert steady.level(0.05) == Familiarity(np.concatenate([later, earlier])).level(0.05)
    assert better.level(0.05) < Familiarity(later + 1).level(0.05)


def test_beyond_the_strangest_row_novelty_grows_by_the_tail_of_the_strangest_twentieth():
    known = np.random.default_rng(0).normal(size=400)
    strangest = np.sort(known)[:20]
    away = Familiarity(known).novelty(np.array([strangest[0], strangest[0] - 3.0]))
    assert away[1] - away[0] == pytest.approx(3.0 / (strangest[-1] - strangest.mean()))


def test_halves_of_few_rows_are_not_compared():
    earlier, later = np.random.default_rng(0).normal(size=(2, 40))
    both = Familiarity(np.concatenate([earlier, later - 5]))
    assert both.level(0.2) == Familiarity(np.concatenate([later - 5, earlier])).level(0.2)
