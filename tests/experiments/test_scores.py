"""Scores added up batch by batch are those of scikit-learn on the whole."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, log_loss, mean_absolute_error, r2_score

from cndpm.experiments.scores import (
    ClassAnswers,
    ClassScores,
    DensityAnswers,
    DensityScores,
    ValueAnswers,
    ValueScores,
)


def class_answers(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    truth, proba = rng.integers(n_classes, size=n), rng.dirichlet(np.ones(n_classes), size=n)
    return truth, proba


def in_batches(scores, make, n, size):
    for start in range(0, n, size):
        scores.add(make(slice(start, start + size)))
    return scores


def made_of(truth, proba):
    t, p = torch.from_numpy(truth), torch.from_numpy(proba)
    return lambda part: ClassAnswers(p[part].argmax(1), t[part], p[part].log().gather(1, t[part, None]).squeeze(1))


@settings(deadline=None, max_examples=30)
@given(n=st.integers(2, 200), n_classes=st.integers(2, 6), size=st.integers(1, 30), seed=st.integers(0, 99))
def test_scores_of_classes_are_those_of_scikit_learn(n, n_classes, size, seed):
    truth, proba = class_answers(n, n_classes, seed)
    got = in_batches(ClassScores(), made_of(truth, proba), n, size).results()
    predicted, labels = proba.argmax(1), np.arange(n_classes)
    assert got["accuracy"] == pytest.approx(100 * accuracy_score(truth, predicted))
    assert got["log_loss"] == pytest.approx(log_loss(truth, proba, labels=labels))
    kappa = cohen_kappa_score(truth, predicted) if len({*truth, *predicted}) > 1 else 1.0
    assert got["kappa"] == pytest.approx(kappa)


def test_a_class_held_impossible_costs_what_it_does_in_scikit_learn():
    scores = ClassScores()
    scores.add(ClassAnswers(torch.tensor([0]), torch.tensor([1]), torch.tensor([-torch.inf])))
    assert scores.results()["log_loss"] == pytest.approx(log_loss([1], [[1.0, 0.0]], labels=[0, 1]))


def test_answers_without_probabilities_have_no_log_loss():
    scores = ClassScores()
    scores.add(ClassAnswers(torch.tensor([0, 1]), torch.tensor([0, 1])))
    assert scores.results() == {"accuracy": 100.0, "kappa": 1.0} and ClassScores().results() == {}


@settings(deadline=None, max_examples=30)
@given(n=st.integers(2, 100), n_outputs=st.integers(1, 3), size=st.integers(1, 20), seed=st.integers(0, 99))
def test_scores_of_values_are_those_of_scikit_learn(n, n_outputs, size, seed):
    rng = np.random.default_rng(seed)
    truth, mean, variance = (
        rng.normal(size=(n, n_outputs)) + 1e6,
        rng.normal(size=(n, n_outputs)) + 1e6,
        rng.uniform(0.5, 2, (n, n_outputs)),
    )
    t, m, v = map(torch.from_numpy, (truth, mean, variance))
    got = in_batches(ValueScores(), lambda part: ValueAnswers(m[part], t[part], v[part]), n, size).results()
    assert got["absolute_error"] == pytest.approx(mean_absolute_error(truth, mean))
    assert got["root_squared_error"] == pytest.approx(np.sqrt(((truth - mean) ** 2).mean()))
    if n_outputs == 1:
        assert got["r_squared"] == pytest.approx(r2_score(truth, mean), rel=1e-6)
    densities = torch.distributions.Normal(m, v.sqrt()).log_prob(t).sum(1)
    assert got["log_loss"] == pytest.approx(-float(densities.mean()))


def test_bits_per_dimension_are_the_mean_of_all_samples():
    log_density = torch.randn(25, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores = in_batches(DensityScores(), lambda part: DensityAnswers(log_density[part], 3), 25, 10)
    assert scores.results()["bits_per_dim"] == pytest.approx(-float(log_density.mean()) / 3 / np.log(2))


def test_scores_that_were_stored_go_on_to_the_same_bits():
    truth, proba = class_answers(100, 3, 0)
    make, whole, part = made_of(truth, proba), ClassScores(), ClassScores()
    for start in range(0, 100, 10):
        whole.add(make(slice(start, start + 10)))
        part.add(make(slice(start, start + 10)))
        state, part = part.state_dict(), ClassScores()
        part.load_state_dict(state)
    assert part.results() == whole.results()


def test_answers_without_probabilities_count_in_no_log_loss():
    scores, truth = ClassScores(), torch.tensor([0, 1])
    scores.add(ClassAnswers(truth, truth, torch.tensor([0.5, 0.5]).log()))
    scores.add(ClassAnswers(truth, truth))
    assert scores.results()["log_loss"] == pytest.approx(np.log(2))
