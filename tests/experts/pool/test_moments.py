"""Means by label and scatter against numpy, discriminants against scikit-learn, forgetting against weighted sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from cndpm.experts.pool.mix import log_normalised
from cndpm.experts.pool.moments import ByLabel, Moments

KEEPS, FADE = (0.7, 0.95), 0.9

SINGLE = 1e-5
"""Relative error of what is made with factors, which are in single precision."""


def rows(n, d=3, n_labels=3, seed=0):
    """Correlated rows around a mean of every label; each label occurs."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_labels), rng.integers(n_labels, size=n - n_labels)])
    f = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 2 * rng.normal(size=(n_labels, d))[y]
    return f, y


def taught(f, y, sizes=(), n_labels=3):
    moments = Moments(f.shape[1], keeps=KEEPS, fade=FADE, n_labels=n_labels)
    ends = [*np.minimum(np.cumsum(sizes), len(y)).astype(int).tolist(), len(y)]
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if end > start:
            moments.learn(f[start:end], ByLabel.of(y[start:end]), rule=0)
    return moments


def renewed(f, y, **kinds):
    """One that was taught, with every inverse and every discriminant up to date."""
    moments = taught(f[:-1], y[:-1], **kinds)
    moments.due[:] = np.inf
    moments.learn(f[-1:], ByLabel.of(y[-1:]), rule=0)
    return moments


def inverse_of_rule(moments, rule):
    """W of a rule."""
    whitening = moments.whitening_of_rule(rule)
    return whitening @ whitening.T


def scatters(moments):
    """All scatters, both sides of the diagonal."""
    lower = moments.scatters
    assert not np.triu(lower, 1).any()
    return lower + np.tril(lower, -1).transpose(0, 2, 1)


@given(st.lists(st.integers(1, 20), max_size=5), st.integers(0, 1000))
def test_a_rule_holds_the_means_and_the_scatter_of_all_rows_whatever_the_batches(sizes, seed):
    f, y = rows(sum(sizes) + 30, seed=seed)
    moments = taught(f, y, sizes)
    means = np.stack([f[y == label].mean(axis=0) for label in range(3)])
    within = f - means[y]
    np.testing.assert_array_equal(moments.n[-1], np.bincount(y, minlength=3))
    np.testing.assert_allclose(moments.means[-1], means, atol=1e-9)
    np.testing.assert_allclose(scatters(moments)[-1], within.T @ within, atol=1e-7)
    assert moments.weights[-1] == len(y) - 3  # the degrees of freedom


@pytest.mark.parametrize("n", [40, 2000])
def test_a_rule_discriminates_like_scikit_learn_with_the_same_shrinkage(n):
    f, y = rows(n)
    moments = renewed(f, y)
    freedom, size = n - 3, np.trace(scatters(moments)[-1]) / 3 / (n - 3)
    shrinkage = 0.01 + 0.3 * 3 / (3 + freedom)
    covariance = (1 - shrinkage) * scatters(moments)[-1] / freedom + (shrinkage * size + 1e-6) * np.eye(3)
    np.testing.assert_allclose(inverse_of_rule(moments, 0), np.linalg.inv(covariance), rtol=SINGLE)

    reference = LinearDiscriminantAnalysis(solver="lsqr", priors=[1 / 3] * 3, covariance_estimator=_Known(covariance))
    reference.fit(f, y)
    mine, theirs = moments.log_likelihood(f)[-1], reference.decision_function(f)
    np.testing.assert_allclose(mine - mine[:, :1], theirs - theirs[:, :1], rtol=SINGLE, atol=SINGLE)


class _Known:
    """Tells scikit-learn the same covariance for every label; it averages them by the priors."""

    def __init__(self, covariance):
        self._covariance = covariance

    def fit(self, _):
        self.covariance_ = self._covariance
        return self


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.lists(st.integers(1, 9), max_size=6))
def test_a_recent_mean_weighs_rows_by_how_many_of_their_label_came_later(labels, sizes):
    y = np.array(labels)
    f = np.random.default_rng(len(y)).normal(size=(len(y), 2))
    moments = taught(f, y, sizes)
    for slot, keep in enumerate([*KEEPS, 1.0]):
        for label in set(labels):
            own = f[y == label]
            weights = keep ** np.arange(len(own))[::-1]
            assert moments.n[slot, label] == pytest.approx(weights.sum())
            np.testing.assert_allclose(moments.means[slot, label], weights @ own / weights.sum(), atol=1e-9)


def test_other_labels_do_not_move_what_is_known_of_one_by_a_bit():
    f, y = rows(60)
    moments = taught(f, y)
    before = moments.means[:, 0].copy(), moments.n[:, 0].copy()
    moments.learn(f + 50, ByLabel.of(np.where(y == 0, 1, y)), rule=0)
    np.testing.assert_array_equal(moments.means[:, 0], before[0])
    np.testing.assert_array_equal(moments.n[:, 0], before[1])


def test_scatter_fades_by_every_sample_and_the_slowest_slot_tells_it():
    f, y = rows(9)
    moments, plain, n, kept = taught(f, y, [1] * 9), np.zeros((3, 3)), np.zeros(3), np.zeros((3, 3))
    for one, label in zip(f, y, strict=True):
        plain *= FADE
        before, n[label] = n[label] * KEEPS[1], n[label] * KEEPS[1] + 1
        step = one - kept[label]
        plain += before / n[label] * np.outer(step, step)
        kept[label] += step / n[label]
    np.testing.assert_allclose(scatters(moments)[0], plain, atol=1e-9)


def test_a_long_batch_fades_as_single_rows_do():
    f, y = rows(400)
    apart, at_once = taught(f, y, [1] * 399), taught(f, y)
    assert at_once.weights[0] == pytest.approx(apart.weights[0], rel=1e-6)
    sizes = [np.trace(scatters(one)[0]) for one in (apart, at_once)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.25)


def test_the_weight_of_a_scatter_is_that_of_single_rows_however_many_labels_begin():
    f, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 30
    apart, at_once = (taught(f, y, sizes, n_labels=30) for sizes in ([1] * 59, []))
    np.testing.assert_allclose(at_once.weights, apart.weights)
    assert (at_once.weights > 0).all()


def covariance(scatter, n):
    """S / n as models shrink it."""
    d = len(scatter)
    part = 0.01 + 0.3 * d / (d + n)
    return (1 - part) * scatter / n + (part * np.trace(scatter) / (n * d) + 1e-6) * np.eye(d), 1 - part


def without(moments, slot, group, f, label, weights):
    """log p(x | y) of one row as if its label had not had it, by numpy; weights are what was left of it."""
    of_mean, of_scatter = weights
    n, means = moments.n[slot][label], moments.means[slot].copy()
    away = f - means[label]
    means[label] = (n * means[label] - of_mean * f) / (n - of_mean)
    n_all = moments.weights[group]
    whole, part = covariance(scatters(moments)[group], n_all)
    whole -= part * of_scatter / n_all * n / (n - of_mean) * np.outer(away, away)
    inverse = np.linalg.inv(whole * n_all / (n_all - of_scatter))
    return f @ inverse @ means.T - 0.5 * np.einsum("cd,de,ce->c", means, inverse, means)


def test_leaving_one_out_takes_a_row_from_the_mean_of_its_label_and_from_the_scatter():
    f, y = rows(60)
    moments = renewed(f, y)
    later = np.array([(y[i + 1 :] == y[i]).sum() for i in range(len(y))])
    told = moments.leave_one_out(f, y, later, rule=0)
    for i in range(30, 60):  # of earlier rows the fastest has forgotten all but rounding errors
        at = f[i], y[i]
        for slot, keep in enumerate(KEEPS):
            weights = keep ** later[i], FADE ** later[i]
            np.testing.assert_allclose(told[slot, i], without(moments, slot, 0, *at, weights), rtol=SINGLE, atol=SINGLE)
        np.testing.assert_allclose(told[-1, i], without(moments, 2, 1, *at, (1, 1)), rtol=SINGLE, atol=SINGLE)


def test_leaving_one_out_is_learning_without_it():
    f, y = rows(300)
    moments = renewed(f, y)
    told, plain = (
        log_normalised(made[-1]) for made in (moments.leave_one_out(f, y, 0 * y, 0), moments.log_likelihood(f))
    )
    rest = []
    for i in range(40):
        without_it = renewed(np.delete(f, i, 0), np.delete(y, i))
        rest.append(log_normalised(without_it.log_likelihood(f[i : i + 1])[-1, 0]))
    off, before = np.abs(told[:40] - rest).max(axis=1), np.abs(plain[:40] - rest).max(axis=1)
    assert off.mean() < 0.25 * before.mean() and off.max() < 0.1


def test_a_label_that_was_never_met_is_four_nats_below_the_least_likely():
    f, y = rows(40)
    moments = taught(f, y, n_labels=5)
    told = moments.log_likelihood(f)
    np.testing.assert_allclose(told[..., 3:], (told[..., :3].min(axis=2) - 4.0)[..., None].repeat(2, axis=2))


def test_a_model_that_knows_no_label_prefers_none():
    assert not Moments(2, keeps=KEEPS, fade=FADE, n_labels=3).log_likelihood(np.ones((4, 2))).any()


@given(st.permutations(range(4)))
def test_relabelling_permutes_what_is_answered(places):
    f, y = rows(40)
    moments, plain = taught(f, y), taught(f, y)
    plain.admit(4)
    moments.relabel(np.array(places))
    np.testing.assert_array_equal(moments.log_likelihood(f)[..., places], plain.log_likelihood(f))


def test_a_new_rule_begins_where_the_old_one_stands_and_moves_faster():
    f, y = rows(300)
    moments = renewed(f, y)
    moments.add_rule(0)
    assert len(moments.weights) == 3
    told = moments.log_likelihood(f)
    np.testing.assert_array_equal(told[-1], told[-2])
    assert moments.n[-1].tolist() == [3.0] * 3 and moments.weights[-1] == 200.0
    np.testing.assert_allclose(moments.scatters[-1] / 200, moments.scatters[-2] / moments.weights[-2])
    old = moments.means[-2].copy()
    moments.learn(f[:50] + 5, ByLabel.of(y[:50]), recent=False, rule=1)
    np.testing.assert_array_equal(moments.means[-2], old)
    assert (moments.means[-1] > old + 3).all()


def test_dropping_a_rule_leaves_the_others_as_they_were():
    f, y = rows(100)
    moments = taught(f, y)
    for rule in range(2):
        moments.add_rule(rule)
        moments.learn(f + rule, ByLabel.of(y), rule=rule + 1)
    told = moments.log_likelihood(f)
    moments.drop_rule(1)
    np.testing.assert_allclose(moments.log_likelihood(f), told[[0, 1, 2, 4]], rtol=1e-12)
    factor = moments.factors[-1].astype(float)
    np.testing.assert_allclose(inverse_of_rule(moments, 1), np.linalg.inv(factor @ factor.T))
    assert len(moments.scatters) == 3


def test_factors_wait_for_a_part_of_the_samples_and_means_do_not():
    f, y = rows(1000)
    moments = taught(f, y)
    inverse = inverse_of_rule(moments, 0)
    moments.learn(f[:30] + 1, ByLabel.of(y[:30]), rule=0)
    np.testing.assert_array_equal(inverse_of_rule(moments, 0), inverse)
    np.testing.assert_allclose(moments.slopes[-1], moments.means[-1] @ inverse, rtol=SINGLE)
    moments.learn(f[30:120] + 1, ByLabel.of(y[30:120]), rule=0)
    assert (inverse_of_rule(moments, 0) != inverse).any()


def test_state_resumes_to_the_bit():
    f, y = rows(100)
    whole, half = taught(f, y, [50]), taught(f[:50], y[:50])
    resumed = Moments(3, keeps=KEEPS, fade=FADE, n_labels=3)
    resumed.load_state_dict(half.state_dict(), d=3)
    resumed.learn(f[50:], ByLabel.of(y[50:]), rule=0)
    np.testing.assert_array_equal(resumed.log_likelihood(f), whole.log_likelihood(f))
