"""Members of the pool against models fitted to all samples at once."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from cndpm.experts.pool import ClassFamily, Discriminants, Regressions, ValueFamily
from cndpm.experts.pool.forgetting import prior_strength
from cndpm.state import StateError


def blobs(n=200, d=3, seed=0):
    generator = np.random.default_rng(seed)
    y = generator.integers(3, size=n)
    return generator.normal(size=(n, d)) + 2 * np.eye(3, d)[y], y


def in_batches(model, z, y, size=10, members=None):
    for start in range(0, len(z), size):
        part = slice(start, start + size)
        learning = range(len(model)) if members is None else members
        model.learn(torch.from_numpy(z[part]), torch.from_numpy(y[part]), learning)
    return model


def answers(model, z):
    return model.answers(torch.from_numpy(z)).numpy()


def faded_discriminant(z, y, weights):
    """What discriminants with these weights answer, in closed form."""
    counts = np.array([weights[y == c].sum() for c in range(3)])
    sums = np.stack([(weights[y == c, None] * z[y == c]).sum(axis=0) for c in range(3)])
    prior, n = prior_strength(3), weights.sum()
    scatter = sum((w * np.outer(row, row)) for w, row in zip(weights, z, strict=True))
    scatter -= sum(np.outer(s, s) / c for s, c in zip(sums, counts, strict=True))
    within = (scatter + prior * np.eye(3)) / (n + prior)
    means = (sums + sums.sum(axis=0) / n) / (counts + 1)[:, None]
    offsets = np.log((counts + 0.5) / (n + 1.5)) - 0.5 * (means * np.linalg.solve(within, means.T).T).sum(axis=1)
    return z @ np.linalg.solve(within, means.T) + offsets


def test_discriminants_that_forget_nothing_are_the_linear_discriminant():
    z, y = blobs(5000)
    logits = answers(in_batches(Discriminants(3, 3, (1.0,)), z, y, size=500), z[:50])[0]
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = LinearDiscriminantAnalysis().fit(z, y).predict_proba(z[:50])
    np.testing.assert_allclose(proba / proba.sum(axis=1, keepdims=True), expected, atol=0.01)


@pytest.mark.parametrize("keep", [0.9, 0.99, 1.0])
def test_discriminants_are_the_faded_sums(keep):
    z, y = blobs(40)
    model = in_batches(Discriminants(3, 3, (keep, 0.5)), z, y)
    expected = faded_discriminant(z, y, keep ** np.arange(39, -1, -1))
    np.testing.assert_allclose(answers(model, z)[0], expected)


def test_a_class_that_comes_later_finds_room():
    z, y = blobs(60)
    model = in_batches(Discriminants(3, 2, (1.0,)), z[y < 2], y[y < 2])
    model.admit(3)
    assert (answers(model, z)[0, :, 2] <= -20).all()
    in_batches(model, z[y == 2], y[y == 2])
    assert (answers(model, z)[0].argmax(axis=1) == y).mean() > 0.8


def test_a_member_that_came_later_or_began_anew_knows_what_it_learned_alone():
    z, y = blobs(90)
    model = in_batches(Discriminants(3, 3, (0.9, 1.0)), z[:30], y[:30])
    model.append()
    model.begin(1)
    in_batches(model, z[30:60], y[30:60], members=(0, 2))
    in_batches(model, z[60:], y[60:], members=(0, 1))
    model.hurry()
    in_batches(model, z[60:70], y[60:70])
    weights = {1: [*range(60, 90), *range(60, 70)], 2: [*range(30, 60), *range(60, 70)]}
    for m, rows in weights.items():
        expected = faded_discriminant(z[rows], y[rows], np.ones(len(rows)))
        np.testing.assert_allclose(answers(model, z[rows])[m], expected)


def test_a_member_that_begins_with_other_labels_has_learned_them_so():
    z, y = blobs(120)
    model, labels = Discriminants(3, 3, (0.9, 1.0)), np.array([2, 0, 1])
    in_batches(model, z[:90], y[:90])
    model.append()
    model.begin(2, 1, labels.tolist())
    in_batches(model, z[90:], labels[y[90:]], members=(2,))
    model.hurry()
    in_batches(model, z[:10], labels[y[:10]], members=(2,))
    rows = [*range(120), *range(10)]
    expected = faded_discriminant(z[rows], labels[y[rows]], np.ones(130))
    np.testing.assert_allclose(answers(model, z[rows])[2], expected)


def test_patient_members_are_renewed_a_quarter_as_often():
    z, y = blobs(3000)
    model, renewed = Discriminants(3, 3, (0.99, 0.99)), np.zeros(2)
    for start in range(0, 3000, 10):
        before = answers(model, z[:5])
        rows = torch.from_numpy(z[start : start + 10]), torch.from_numpy(y[start : start + 10])
        model.learn(*rows, (0, 1), patient=(1,))
        renewed += (answers(model, z[:5]) != before).any(axis=(1, 2))
    assert renewed[0] == 300 and 140 < renewed[1] < 160  # every 5 samples are due with each batch, every 20 with others


@pytest.mark.parametrize("make", [lambda: Discriminants(3, 3, (0.9, 1.0)), lambda: Regressions(3, 1, (0.9, 1.0))])
def test_a_member_resumes_to_the_bit(make):
    z, y = blobs()
    targets = y if isinstance(make(), Discriminants) else y[:, None].astype(float)
    whole, stopped, resumed = in_batches(make(), z, targets), in_batches(make(), z[:90], targets[:90]), make()
    resumed.load_state_dict(stopped.state_dict())
    in_batches(resumed, z[90:], targets[90:])
    assert (answers(resumed, z) == answers(whole, z)).all()
    for part, other in zip(*(model.state_dict()["sums"]["products"] for model in (whole, resumed)), strict=True):
        assert part.equal(other)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weights", torch.zeros(2, 3, 4, dtype=torch.float64)),
        ("offsets", torch.full((2, 3), torch.nan, dtype=torch.float64)),
        ("offsets", torch.zeros(2, 3)),
        ("waits", [1]),
        ("waits", [1, 2.0]),
        ("sums", {"products": [], "since": [], "waiting": torch.zeros(0, 6, dtype=torch.float64)}),
    ],
)
def test_a_state_of_another_form_is_refused(name, value):
    model = in_batches(Discriminants(3, 3, (0.9, 1.0)), *blobs())
    with pytest.raises(StateError, match=f"{name}|products"):
        Discriminants(3, 3, (0.9, 1.0)).load_state_dict({**model.state_dict(), name: value})


def test_regressions_are_the_ridge_regression():
    z, _ = blobs(50)
    y = z @ np.array([[1.0], [-2.0], [0.5]]) + 3
    model = in_batches(Regressions(3, 1, (0.95,)), z, y)
    rows, weights = np.append(z, np.ones((50, 1)), axis=1), 0.95 ** np.arange(49, -1, -1)
    penalty = np.diag([*[prior_strength(3)] * 3, 1e-3])
    solution = np.linalg.solve((rows * weights[:, None]).T @ rows + penalty, (rows * weights[:, None]).T @ y)
    np.testing.assert_allclose(answers(model, z)[0, :, 0], rows @ solution)


def test_a_regression_knows_that_it_does_not_know_far_away():
    z, _ = blobs(300)
    model = in_batches(Regressions(3, 1, (1.0,)), z, z[:, :1])
    near, far = answers(model, np.array([[0.0, 0.0, 0.0], [100.0, 0.0, 0.0]]))[0, :, 1, 0]
    assert far > 10 * near


def test_the_noise_of_a_regression_is_that_of_its_targets():
    generator = np.random.default_rng(0)
    z = generator.normal(size=(3000, 2))
    model = in_batches(Regressions(2, 1, (1.0,)), z, z[:, :1] + 0.3 * generator.normal(size=(3000, 1)))
    assert abs(float(answers(model, z[:1])[0, 0, 1, 0]) - 0.09) < 0.03


def test_answers_that_are_given_are_not_computed_again():
    z, _ = blobs(100)
    with_answers, without = Regressions(3, 1, (0.9, 1.0)), Regressions(3, 1, (0.9, 1.0))
    for start in range(0, 100, 10):
        rows = torch.from_numpy(z[start : start + 10])
        with_answers.learn(rows, rows[:, :1], (0, 1), answered=with_answers.answers(rows))
        without.learn(rows, rows[:, :1], (0, 1))
    assert (answers(with_answers, z) == answers(without, z)).all()


def test_scores_are_those_of_the_distributions():
    y, proba = np.array([1, 0]), np.array([[0.3, 0.7], [0.6, 0.4]])
    np.testing.assert_allclose(np.exp(ClassFamily().log_scores(np.log(proba), y)), [0.7, 0.6])
    moments = np.array([[[1.0, 0.0], [4.0, 1.0]]])  # one sample, mean and variance of two targets
    densities = [np.exp(-((v - m) ** 2) / (2 * s)) / np.sqrt(2 * np.pi * s) for v, m, s in ((2, 1, 4), (1, 0, 1))]
    np.testing.assert_allclose(ValueFamily().log_scores(moments, np.array([[2.0, 1.0]])), np.log(np.prod(densities)))


def test_a_mixture_is_the_weighted_sum_of_the_linear_form():
    values = np.array([[[1.0], [0.5]], [[3.0], [2.0]]])  # two answers: mean and variance
    mixed = ValueFamily().from_linear(np.tensordot([0.25, 0.75], ValueFamily().linear(values), axes=1))
    np.testing.assert_allclose(mixed.ravel(), [2.5, 0.25 * (0.5 + 1.5**2) + 0.75 * (2.0 + 0.5**2)])
    proba = np.array([[0.9, 0.1], [0.5, 0.5]])
    mixed = ClassFamily().from_linear(np.tensordot([0.25, 0.75], ClassFamily().linear(np.log(proba)), axes=1))
    np.testing.assert_allclose(np.exp(mixed), [0.6, 0.4])
