"""Members of the pool against models fitted to all samples at once."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from cndpm.experts.pool import ClassFamily, Discriminants, Regressions, ValueFamily
from cndpm.experts.pool.forgetting import prior_strength


def blobs(n=200, d=3, seed=0):
    generator = np.random.default_rng(seed)
    y = generator.integers(3, size=n)
    return generator.normal(size=(n, d)) + 2 * np.eye(3, d)[y], y


def in_batches(model, z, y, size=10):
    for start in range(0, len(z), size):
        model.learn(z[start : start + size], y[start : start + size])
    return model


def test_discriminants_that_forget_nothing_are_the_linear_discriminant():
    z, y = blobs(5000)
    logits = in_batches(Discriminants(3, 3, (1.0,)), z, y, size=500).logits(z[:50])[0]
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = LinearDiscriminantAnalysis().fit(z, y).predict_proba(z[:50])
    np.testing.assert_allclose(proba / proba.sum(axis=1, keepdims=True), expected, atol=0.01)


@pytest.mark.parametrize("keep", [0.9, 0.99, 1.0])
def test_discriminants_are_the_faded_sums(keep):
    z, y = blobs(40)
    model = in_batches(Discriminants(3, 3, (keep, 0.5)), z, y)
    weights = keep ** np.arange(39, -1, -1)
    counts = np.array([weights[y == c].sum() for c in range(3)])
    sums = np.stack([(weights[y == c, None] * z[y == c]).sum(axis=0) for c in range(3)])
    prior, n = prior_strength(3), weights.sum()
    scatter = sum((w * np.outer(row, row)) for w, row in zip(weights, z, strict=True))
    scatter -= sum(np.outer(s, s) / c for s, c in zip(sums, counts, strict=True))
    within = (scatter + prior * np.eye(3)) / (n + prior)
    means = (sums + sums.sum(axis=0) / n) / (counts + 1)[:, None]
    offsets = np.log((counts + 0.5) / (n + 1.5)) - 0.5 * (means * np.linalg.solve(within, means.T).T).sum(axis=1)
    expected = z @ np.linalg.solve(within, means.T) + offsets
    np.testing.assert_allclose(model.logits(z)[0], expected)


def test_a_class_that_comes_later_finds_room():
    z, y = blobs(60)
    model = in_batches(Discriminants(3, 2, (1.0,)), z[y < 2], y[y < 2])
    model.admit(3)
    assert (model.logits(z)[0, :, 2] <= -20).all()
    in_batches(model, z[y == 2], y[y == 2])
    assert (model.logits(z)[0].argmax(axis=1) == y).mean() > 0.8


@pytest.mark.parametrize("make", [lambda: Discriminants(3, 3, (0.9, 1.0)), lambda: Regressions(3, 1, (0.9, 1.0))])
def test_a_member_resumes_to_the_bit(make):
    z, y = blobs()
    targets = y if isinstance(make(), Discriminants) else y[:, None].astype(float)
    whole, stopped, resumed = in_batches(make(), z, targets), in_batches(make(), z[:90], targets[:90]), make()
    resumed.load_state_dict(stopped.state_dict())
    in_batches(resumed, z[90:], targets[90:])
    for name, part in whole.state_dict().items():
        other = resumed.state_dict()[name]
        assert part == other if isinstance(part, list) else part.equal(other)


def test_regressions_are_the_ridge_regression():
    z, _ = blobs(50)
    y = z @ np.array([[1.0], [-2.0], [0.5]]) + 3
    model = in_batches(Regressions(3, 1, (0.95,)), z, y)
    rows, weights = np.append(z, np.ones((50, 1)), axis=1), 0.95 ** np.arange(49, -1, -1)
    penalty = np.diag([*[prior_strength(3)] * 3, 1e-3])
    solution = np.linalg.solve((rows * weights[:, None]).T @ rows + penalty, (rows * weights[:, None]).T @ y)
    np.testing.assert_allclose(model.moments(z)[0, :, 0], rows @ solution)


def test_a_regression_knows_that_it_does_not_know_far_away():
    z, _ = blobs(300)
    model = in_batches(Regressions(3, 1, (1.0,)), z, z[:, :1])
    near, far = model.moments(np.array([[0.0, 0.0, 0.0], [100.0, 0.0, 0.0]]))[0, :, 1, 0]
    assert far > 10 * near


def test_the_noise_of_a_regression_is_that_of_its_targets():
    generator = np.random.default_rng(0)
    z = generator.normal(size=(3000, 2))
    model = in_batches(Regressions(2, 1, (1.0,)), z, z[:, :1] + 0.3 * generator.normal(size=(3000, 1)))
    assert abs(float(model.moments(z[:1])[0, 0, 1, 0]) - 0.09) < 0.03


def test_scores_are_those_of_the_distributions():
    y, proba = np.array([1, 0]), np.array([[0.3, 0.7], [0.6, 0.4]])
    np.testing.assert_allclose(np.exp(ClassFamily().log_scores(np.log(proba), y)), [0.7, 0.6])
    moments = np.array([[[1.0, 0.0], [4.0, 1.0]]])  # one sample, mean and variance of two targets
    densities = [np.exp(-((v - m) ** 2) / (2 * s)) / np.sqrt(2 * np.pi * s) for v, m, s in ((2, 1, 4), (1, 0, 1))]
    np.testing.assert_allclose(ValueFamily().log_scores(moments, np.array([[2.0, 1.0]])), np.log(np.prod(densities)))


def test_another_answer_is_heard_for_classes_and_not_for_values():
    assert ClassFamily().of_another(np.log([[0.5, 0.5]])).shape == (1, 4, 1, 2)
    assert ValueFamily().of_another(np.zeros((1, 2, 1))).shape == (0, 1, 1, 2, 1)
