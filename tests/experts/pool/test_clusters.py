"""Mixtures of Gaussians against scipy's densities, halves against each other, and what does not move them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_t

from cndpm.experts.pool import clusters as module
from cndpm.experts.pool.clusters import Clusters
from cndpm.experts.pool.kept_rows import KeptRows
from cndpm.state import StateError


def drawn(n=400, d=2, seed=0):
    """Rows of two labels, each of two clusters on a diagonal: both have the same mean and the same scatter."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x[:, :2] += 4 * rng.choice([-1.0, 1.0], (n, 2))
    return x, (x[:, 0] * x[:, 1] > 0).astype(int)


def kept(x, y, room=10_000):
    rows = KeptRows(x.shape[1], room)
    rows.admit(int(y.max()) + 1)
    rows.add(x, rows.place(x), y)
    return rows


def grown(rows, n_times=6):
    clusters = Clusters(rows.x.shape[1])
    clusters.admit(len(rows.counts))
    for _ in range(n_times):
        clusters.grow(rows, seed=0)
    return clusters


def n_of(clusters, label, half=0):
    return int((clusters.keys == 2 * label + half).sum())


def density(clusters, z, label, half):
    """The mixture of a half, in closed form."""
    told = []
    for i in np.flatnonzero(clusters.keys == 2 * label + half):
        w, n = clusters.whitening[i], clusters.counts[i]
        told.append(multivariate_t(clusters.means[i], np.linalg.inv(w @ w.T), df=n + 3).pdf(z))
    n = clusters.counts[clusters.keys == 2 * label + half] + 1
    return (n / n.sum()) @ np.stack(told)


def test_answers_are_mixtures_of_students_t_of_both_halves():
    rows = kept(*drawn())
    clusters = grown(rows)
    z = rows.x[:20]
    expected = np.stack([np.log(sum(density(clusters, z, label, half) for half in (0, 1)) / 2) for label in (0, 1)], 1)
    away = clusters.answer(z)[0] - expected
    np.testing.assert_allclose(away, away[0, 0], atol=1e-8)  # up to one constant


def test_what_one_mean_and_one_scatter_cannot_tell_is_told():
    x, y = drawn(600)
    clusters = grown(kept(x[:400], y[:400]))
    assert (clusters.answer(x[400:])[0].argmax(axis=1) == y[400:]).mean() > 0.98


def test_a_gaussian_keeps_the_mean_and_shrunk_covariance_of_its_half():
    x = np.random.default_rng(0).normal(size=(2000, 3)) @ np.array([[1.0, 0.5, 0], [0, 2, 0], [0, 0, 0.3]])
    clusters = grown(kept(x, np.zeros(2000, int)), n_times=1)
    latest = x[-1000:][::2]  # an even number of rows came before them
    np.testing.assert_allclose(clusters.means[0], latest.mean(axis=0), atol=1e-6)
    covariance = np.linalg.inv(clusters.whitening[0] @ clusters.whitening[0].T)
    np.testing.assert_allclose(covariance, np.cov(latest.T), rtol=0.1, atol=0.05)
    assert clusters.counts[0] == 500


def test_the_other_half_says_how_many_gaussians_a_label_has():
    x, y = drawn(800)
    x[y == 1] = np.random.default_rng(1).normal(size=(int(y.sum()), 2))
    clusters = grown(kept(x, y), n_times=2)
    assert n_of(clusters, 0) == n_of(clusters, 0, half=1) > 1
    assert n_of(clusters, 1) == 1


def test_rows_that_were_kept_are_asked_of_the_half_that_never_met_them():
    x, y = drawn()
    rows = kept(x, y)
    clusters = grown(rows)
    told = clusters.answer(x, y, rows.nth)[0]
    usual = clusters.answer(x)[0]
    np.testing.assert_array_equal(told[np.arange(400), 1 - y], usual[np.arange(400), 1 - y])
    for i in range(0, 400, 50):
        others = density(clusters, x[i], int(y[i]), 1 - int(rows.nth[i]) % 2)
        constant = usual[i, 1 - y[i]] - np.log(sum(density(clusters, x[i], 1 - int(y[i]), h) for h in (0, 1)) / 2)
        assert told[i, y[i]] == pytest.approx(np.log(others) + constant)


def test_what_comes_later_moves_no_other_label():
    x, y = drawn()
    rows = kept(x, y)
    clusters = grown(rows)
    before = clusters.answer(x)[0, :, 0]
    more = np.random.default_rng(5).normal(size=(3000, 2))
    for start in range(0, 3000, 100):
        rows.add(more[start : start + 100], rows.place(more[start : start + 100]), np.ones(100, int))
        clusters.grow(rows, seed=0)
    np.testing.assert_allclose(clusters.answer(x)[0, :, 0], before, atol=1e-9)


def test_mixtures_are_fitted_anew_after_a_fifth_more_rows_one_label_at_a_time():
    x, y = drawn(1000)
    rows = kept(x[:500], y[:500])
    clusters = Clusters(2)
    clusters.admit(2)
    clusters.grow(rows, seed=0)
    assert len(np.unique(clusters.keys // 2)) == 1
    clusters.grow(rows, seed=0)
    assert len(np.unique(clusters.keys // 2)) == 2
    before = clusters.fitted_at.copy()
    rows.add(x[500:580], rows.place(x[500:580]), y[500:580])
    clusters.grow(rows, seed=0)
    np.testing.assert_array_equal(clusters.fitted_at, before)
    rows.add(x[580:700], rows.place(x[580:700]), y[580:700])
    clusters.grow(rows, seed=0)
    assert (clusters.fitted_at > before).sum() == 1


def test_labels_without_mixtures_are_four_nats_below_the_least_likely():
    x, y = drawn()
    clusters = grown(kept(x, y))
    clusters.admit(4)
    told = clusters.answer(x[:9])[0]
    np.testing.assert_allclose(told[:, 2:], (told[:, :2].min(axis=1) - 4)[:, None].repeat(2, axis=1))


def test_without_rows_or_room_nothing_is_said():
    assert not Clusters(3).answer(np.ones((4, 3))).any()
    x = np.random.default_rng(0).normal(size=(1200, 100))
    clusters = grown(kept(x, np.arange(1200) % 30), n_times=60)
    assert len(clusters) == 0 and not clusters.answer(x[:5]).any()
    few = grown(kept(x[:6, :2], np.arange(6) % 2))
    assert len(few) == 0


@pytest.mark.parametrize(("most", "n"), [(16, 1), (15, 0), (32, 2)])
def test_the_numbers_of_all_covariances_are_bounded(monkeypatch, most, n):
    monkeypatch.setattr(module, "_MOST_NUMBERS", most)  # two labels, two halves, four numbers a covariance
    clusters = grown(kept(*drawn()))
    assert [n_of(clusters, label, half) for label in (0, 1) for half in (0, 1)] == [n] * 4
    assert clusters.n_numbers_kept == clusters.whitening.size + clusters.means.size + len(clusters)


def test_mixtures_begin_anew_with_rows_from_a_number_on():
    x, y = drawn()
    rows = kept(x, y)
    clusters = grown(rows)
    clusters.begin(400)
    assert len(clusters) == 0
    rows.add(x + 20, rows.place(x + 20), y)
    for _ in range(4):
        clusters.grow(rows, seed=0)
    assert clusters.means.min() > 10


def test_a_label_of_few_rows_has_a_gaussian_of_its_own_place():
    x, y = drawn(400)
    x, y = np.append(x, 12 + np.random.default_rng(3).normal(size=(4, 2)), axis=0), np.append(y, [2] * 4)
    clusters = grown(kept(x, y))
    assert n_of(clusters, 2) == 1
    assert clusters.answer(np.array([[12.0, 12.0], [4.0, 4.0]]))[0].argmax(axis=1).tolist() == [2, 1]


def test_clusters_are_silent_until_every_label_of_four_rows_has_some():
    x, y = drawn(400)
    y[:5] = [2, 2, 2, 3, 3]
    rows, clusters = kept(x, np.minimum(y, 3)), Clusters(2)
    clusters.admit(4)
    assert clusters.is_silent(rows)
    clusters.grow(rows, seed=0)
    assert clusters.is_silent(rows)
    clusters.grow(rows, seed=0)
    assert not clusters.is_silent(rows)
    rows.add(x[:1], rows.place(x[:1]), np.array([2]))
    assert clusters.is_silent(rows)


def test_a_label_that_stays_away_keeps_mixtures_of_its_rows_from_before():
    x, y = drawn(400)
    rows = kept(x, y)
    clusters = grown(rows)
    clusters.begin(400)
    rows.add(x[y == 0] + 30, rows.place(x[y == 0] + 30), np.zeros(int((y == 0).sum()), int))
    for _ in range(4):
        clusters.grow(rows, seed=0)
    assert clusters.means[clusters.keys // 2 == 0].min() > 20
    assert abs(clusters.means[clusters.keys // 2 == 1]).max() < 10


@given(st.permutations(range(3)))
def test_relabelling_permutes_what_is_answered(places):
    x, y = drawn(200)
    moved, plain = (grown(kept(x, y), 2) for _ in range(2))
    plain.admit(3)
    moved.relabel(np.array(places))
    np.testing.assert_allclose(moved.answer(x)[..., places], plain.answer(x), rtol=1e-12)


def test_state_resumes_to_the_bit_and_grows_the_same():
    x, y = drawn(900)
    rows = kept(x[:400], y[:400])
    clusters = grown(rows)
    resumed = Clusters(2)
    resumed.load_state_dict(clusters.state_dict(), d=2, labels=2)
    np.testing.assert_array_equal(resumed.answer(x), clusters.answer(x))
    rows.add(x[400:], rows.place(x[400:]), y[400:])
    clusters.grow(rows, seed=0)
    resumed.grow(rows, seed=0)
    np.testing.assert_array_equal(resumed.answer(x), clusters.answer(x))


def test_states_that_cannot_be_are_refused():
    state = grown(kept(*drawn())).state_dict()
    with pytest.raises(StateError, match="both halves"):
        Clusters(2).load_state_dict(state | {"keys": state["keys"] * 2}, d=2, labels=2)
    with pytest.raises(StateError, match="keys"):
        Clusters(2).load_state_dict(state | {"keys": state["keys"] + 4}, d=2, labels=2)
    with pytest.raises(StateError, match="counts"):
        Clusters(2).load_state_dict(state | {"counts": -state["counts"] - 1}, d=2, labels=2)
