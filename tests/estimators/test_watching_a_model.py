"""Watching a model: explanations, events and novelty of the three estimators, and the density as outlier detector."""

import pickle

import numpy as np
import pytest
from benchmarks.novelty import digits, moons, sensors
from scipy.stats import norm
from sklearn.base import clone, is_outlier_detector
from sklearn.metrics import roc_auc_score

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor

ESTIMATORS = [CNDPMClassifier, CNDPMRegressor, CNDPMDensity]


def blobs(seed=0, n=150):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(0, 1, (n, 3)), rng.normal(20, 1, (n, 3))])


def fitted(estimator, X, **parameters):
    model = estimator(memory_size=50, random_state=0, **parameters)
    return model.partial_fit(X) if estimator is CNDPMDensity else model.partial_fit(X, (X[:, 0] > 10).astype(int))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_explanation_names_the_expert_that_answers(estimator):
    X = blobs()
    model = fitted(estimator, X)
    assert model.n_experts_ == 2
    answer = model.explain(X)
    assert len(answer) == len(X)
    assert (answer.expert == np.repeat([0, 1], 150)).mean() > 0.95
    assert ((answer.expert_proba > 0.5) & (answer.expert_proba <= 1)).all()
    assert (answer.prediction == model.predict(X)).all()
    assert (answer.novelty == model.novelty(X)).all()


def test_an_explanation_has_what_its_estimator_knows():
    X = blobs()
    classifier, regressor, density = (fitted(estimator, X) for estimator in ESTIMATORS)
    np.testing.assert_allclose(classifier.explain(X).proba, classifier.predict_proba(X).max(axis=1))
    np.testing.assert_array_equal(regressor.explain(X).std, regressor.predict(X, return_std=True)[1])
    np.testing.assert_array_equal(density.explain(X).log_density, density.score_samples(X))
    assert regressor.explain(X).proba is None and set(density.explain(X).columns()) == {
        "expert", "expert_proba", "prediction", "novelty", "log_density",
    }  # fmt: skip


def test_samples_that_wait_in_the_memory_answer_as_expert_minus_one():
    X = blobs()
    model = CNDPMClassifier(memory_size=100, random_state=0).partial_fit(X[:30], np.zeros(30, dtype=int))
    assert (model.explain(X[:5]).expert == -1).all() and (model.explain(X[:5]).expert_proba == 1).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_events_and_novelty_are_kept_when_a_model_is_saved_copied_and_taught_on(estimator, tmp_path):
    X, more = blobs(), blobs(seed=1)
    model, y = fitted(estimator, X), (more[:, 0] > 10).astype(int)
    model.save(tmp_path / "model.cndpm")
    others = [estimator.load(tmp_path / "model.cndpm"), pickle.loads(pickle.dumps(model))]
    assert [event.kind for event in model.events_][:2] == ["founded", "founded"]
    for one in (model, *others):
        one.partial_fit(more) if estimator is CNDPMDensity else one.partial_fit(more, y)
    for other in others:
        assert other.events_ == model.events_
        assert (other.novelty(more) == model.novelty(more)).all()
    assert not hasattr(clone(model), "learner_")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_novelty_does_not_depend_on_how_a_stream_is_cut(estimator):
    X = blobs()
    whole, cut = fitted(estimator, X), fitted(estimator, X[:100])
    for start in range(100, len(X), 50):
        part = X[start : start + 50]
        cut.partial_fit(part) if estimator is CNDPMDensity else cut.partial_fit(part, (part[:, 0] > 10).astype(int))
    np.testing.assert_allclose(cut.novelty(X), whole.novelty(X), rtol=1e-6, atol=1e-9)
    assert cut.events_ == whole.events_


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_without_exemplars_there_is_no_novelty(estimator):
    X = blobs()
    model = fitted(estimator, X, n_exemplars=0)
    with pytest.raises(ValueError, match="n_exemplars=0 keeps no rows"):
        model.novelty(X)
    assert np.isnan(model.explain(X[:2]).novelty).all() if estimator is not CNDPMDensity else True


@pytest.mark.parametrize(("case", "least"), [(digits, 0.90), (moons, 0.93), (sensors, 0.99)])
def test_what_is_new_is_told_from_what_is_known(case, least):
    learned, known, new, _ = case(0)
    model = CNDPMDensity(random_state=0).fit(learned)
    is_new = np.repeat([0, 1], [len(known), len(new)])
    rows = np.concatenate([known, new])
    assert roc_auc_score(is_new, model.novelty(rows)) >= least
    assert roc_auc_score(is_new, -model.decision_function(rows)) >= least


def test_false_alarms_keep_the_rate_that_is_asked_for():
    shares = {0.02: [], 0.1: []}
    for seed in range(4):
        learned, known, _, _ = moons(seed)
        model = CNDPMDensity(random_state=seed).fit(learned)
        for rate, seen in shares.items():
            seen.append((model.set_params(false_alarm_rate=rate).predict(known) == -1).mean())
    for rate, seen in shares.items():
        assert np.mean(seen) == pytest.approx(rate, rel=1 / 3)


def test_the_outlier_contract_holds_together():
    X = blobs()
    model = fitted(CNDPMDensity, X)
    assert is_outlier_detector(model)
    np.testing.assert_array_equal(model.decision_function(X), model.score_samples(X) - model.offset_)
    np.testing.assert_array_equal(model.predict(X) == -1, model.novelty(X) > -np.log(model.false_alarm_rate))
    assert (CNDPMDensity(memory_size=50, random_state=0).fit_predict(X) == -1).mean() == pytest.approx(0.05, abs=0.04)


def test_images_without_a_density_of_pixels_are_judged_by_kernels():
    learned, known, new, _ = digits(0)
    model = CNDPMDensity(random_state=0, input_shape=(1, 8, 8)).fit(learned[:300] / 16)
    assert (model.predict(new / 16) == -1).mean() > (model.predict(known / 16) == -1).mean() + 0.2


@pytest.mark.parametrize("rate", [0, 1, -0.1, 2, "5 %"])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises((ValueError, TypeError), match="false_alarm_rate"):
        CNDPMDensity(false_alarm_rate=rate).fit(blobs())
    model = fitted(CNDPMDensity, blobs()).set_params(false_alarm_rate=rate)
    with pytest.raises((ValueError, TypeError), match="false_alarm_rate"):
        model.predict(blobs())


@pytest.mark.parametrize("model", [CNDPMDensity(random_state=0), CNDPMClassifier(random_state=0)])
def test_the_gap_between_two_clusters_of_one_column_is_new(model):
    """Few rows make one expert, and one Gaussian over both clusters is densest where nothing is."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.concatenate([rng.normal(-3, 0.5, 200), rng.normal(3, 1, 200)]))[:, None]
    model = model.fit(rows, (rows[:, 0] > 0).astype(int))
    assert model.n_experts_ == 1
    left, gap, right = model.novelty(np.array([[-3.0], [-1.0], [3.0]]))
    assert gap > np.log(400) and max(left, right) < 1


def test_the_density_of_two_clusters_of_one_column_is_near_the_truth():
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.concatenate([rng.normal(-3, 0.5, 400), rng.normal(3, 1, 400)]))[:, None]
    truth = np.logaddexp(norm(-3, 0.5).logpdf(rows[400:]), norm(3, 1).logpdf(rows[400:])).mean() - np.log(2)
    assert CNDPMDensity(random_state=0).fit(rows[:400]).score(rows[400:]) > truth - 0.05
