"""river's own checks, its pipelines and its evaluation, and features that come and go."""

import itertools
import math
import pickle
import random

import numpy as np
import pandas as pd
import pytest

from cndpm import CNDPMClassifier as Estimator
from cndpm.river import CNDPMAnomaly, CNDPMClassifier, CNDPMRegressor
from river import anomaly, checks, compose, datasets, evaluate, metrics, preprocessing

SLOW = "check_bounded_memory_growth"  # ten times as many rows as the others


def checks_of(model):
    """river's checks of a model, each on the first of its streams."""
    found = {}
    for check in checks.yield_checks(model):
        found.setdefault(check.__name__, check)
    return [check for name, check in found.items() if name != SLOW]


def unlabelled(n=300, d=5):
    draws = random.Random(0)
    for i in range(n):
        is_odd = i % 25 == 24
        yield {f"v{j}": draws.gauss(6 * is_odd, 1) for j in range(d)}, is_odd


def detector_checks():
    """river's checks of anomaly detectors, on a stream of ours: theirs is downloaded."""
    found = [check for check in checks.yield_checks(CNDPMAnomaly()) if hasattr(check, "func")]
    plain = [check for check in checks.yield_checks(CNDPMAnomaly()) if not hasattr(check, "func")]
    return plain + [
        lambda model, f=check.func: f(model, list(unlabelled(100))) for check in found if check.__name__ != SLOW
    ]


def test_the_classifier_passes_rivers_checks():
    for check in checks_of(CNDPMClassifier(memory_size=50)):
        check(CNDPMClassifier(memory_size=50))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [CNDPMClassifier, CNDPMRegressor])
def test_the_models_pass_rivers_checks_on_all_their_streams(kind):
    checks.check_estimator(kind(memory_size=50))


def test_the_detector_passes_rivers_checks():
    for check in detector_checks():
        check(CNDPMAnomaly(memory_size=50).clone())


def test_a_pipeline_is_evaluated_progressively():
    model = compose.Discard("popup_window") | preprocessing.StandardScaler() | CNDPMClassifier(memory_size=50)
    accuracy = evaluate.progressive_val_score(datasets.Phishing().take(300), model, metrics.Accuracy())
    assert accuracy.get() > 0.7


def test_the_regressor_is_evaluated_progressively():
    error = evaluate.progressive_val_score(
        datasets.TrumpApproval().take(300), CNDPMRegressor(memory_size=50), metrics.MAE()
    )
    assert error.get() < 1.0


def test_a_row_is_learned_as_the_estimator_learns_it():
    sizes = {"memory_size": 50, "batch_size": 1}
    model, estimator = CNDPMClassifier(**sizes), Estimator(**sizes, random_state=0)
    for x, y in datasets.Phishing().take(120):
        row = np.array([[x[name] for name in sorted(x)]])
        if hasattr(estimator, "learner_"):
            expected = dict(zip(estimator.classes_.tolist(), estimator.predict_proba(row)[0].tolist(), strict=True))
            assert model.predict_proba_one(x) == expected
        model.learn_one(x, y)
        estimator.partial_fit(row, [y])
    assert model.events == estimator.events_ and model.n_experts == estimator.n_experts_ > 0


def test_many_rows_are_as_one_after_the_other():
    rows = list(datasets.ImageSegments().take(100))
    X, y = pd.DataFrame([x for x, _ in rows]), pd.Series([y for _, y in rows])
    many, one = CNDPMClassifier(memory_size=50), CNDPMClassifier(memory_size=50)
    many.learn_many(X, y)
    for x, label in rows:
        one.learn_one(x, label)
    np.testing.assert_allclose(many.predict_proba_many(X), one.predict_proba_many(X), rtol=1e-6, atol=1e-9)
    assert list(many.predict_many(X)) == [one.predict_one(x) for x, _ in rows]


def test_the_score_is_a_rate_of_false_alarms():
    model, draws, scores = CNDPMAnomaly(memory_size=100), random.Random(1), []
    for i in range(900):
        x = {"a": draws.gauss(0, 1), "b": draws.gauss(3, 0.1)}
        if i >= 300:
            scores.append(model.score_one(x))
        model.learn_one(x)
    assert np.mean(np.array(scores) > 0.9) == pytest.approx(0.1, abs=0.04)
    assert model.score_one({"a": 0.0, "b": 4.0}) > 0.999
    filtered = anomaly.ThresholdFilter(model, threshold=0.99)
    assert filtered.classify(model.score_one({"a": 9.0, "b": 3.0}))


def test_a_missing_feature_is_completed_as_the_estimator_does_and_a_late_one_is_left_out():
    model = CNDPMRegressor(memory_size=20)
    for a, b in itertools.product(range(10), range(10)):
        model.learn_one({"a": a, "b": b}, float(a))
    hole = np.array([[np.nan, 3.0]])
    expected = float(model.estimator.predict(hole)[0])
    for x in ({"b": 3}, {"a": None, "b": 3}, {"a": math.nan, "b": 3}, {"b": 3, "c": 1e9}):
        assert model.predict_one(x) == expected
    model.learn_one({"b": 3}, 4.0)  # the same as of the estimator
    assert model.estimator.learner_.events.n_samples == 101
    assert model.predict_one({"a": 4.5, "b": 3, "c": 1e9}) == model.predict_one({"a": 4.5, "b": 3})


def test_rows_with_gaps_and_empty_ones_are_answered_and_learned_by_all_models():
    classifier, detector = CNDPMClassifier(memory_size=20), CNDPMAnomaly(memory_size=20)
    draws = random.Random(2)
    for i in range(120):
        x = {"a": draws.gauss(8 * (i % 2), 1), "b": draws.gauss(8 * (i % 2), 1)}
        if i % 5 == 4:
            del x[draws.choice("ab")]
        classifier.learn_one(x, i % 2)
        detector.learn_one(x)
    assert classifier.predict_one({"a": 8.0}) == 1 and classifier.predict_one({"b": 0.0}) == 0
    assert detector.score_one({"a": 8.0}) < 0.9 < detector.score_one({"a": 40.0})
    for x in ({}, {"c": 1.0}):
        assert sum(classifier.predict_proba_one(x).values()) == pytest.approx(1)
        classifier.learn_one(x, 1)
        detector.learn_one(x)
        assert 0 <= detector.score_one(x) <= 1
    assert classifier.estimator._codec.counts == [60, 62]


def test_words_are_refused_with_advice():
    with pytest.raises(TypeError, match="features are numbers; 'colour' is 'red'"):
        CNDPMClassifier().learn_one({"colour": "red"}, True)
    with pytest.raises(ValueError, match="says which features there are; got an empty one"):
        CNDPMAnomaly().learn_one({})


def test_rows_wait_for_others_and_are_learned_as_the_estimator_learns_a_batch():
    rows = list(datasets.Phishing().take(63))
    first = next(i for i, (_, y) in enumerate(rows) if y != rows[0][1])  # a label that is new does not wait
    sizes = {"memory_size": 20, "batch_size": 5}
    model, estimator = CNDPMClassifier(**sizes, surprise=math.inf), Estimator(**sizes, random_state=0)
    stops = [0, 1, *range(6, first + 1, 5), *range(first + 1, 64, 5)]
    for start, stop in itertools.pairwise(stops):
        X = np.array([[x[name] for name in sorted(x)] for x, _ in rows[start:stop]])
        for i, (x, y) in enumerate(rows[start:stop]):
            assert model.n_waiting == i
            if start:
                proba = estimator.predict_proba(X[i : i + 1])[0].tolist()
                assert model.predict_proba_one(x) == dict(zip(estimator.classes_.tolist(), proba, strict=True))
            model.learn_one(x, y)
        estimator.partial_fit(X, [y for _, y in rows[start:stop]])
    assert model.events == estimator.events_ and model.n_experts == estimator.n_experts_ > 0


def test_a_row_that_is_refused_changes_neither_what_waits_nor_the_means():
    models = [CNDPMRegressor(memory_size=20, batch_size=4) for _ in range(2)]
    for i in range(12):
        for model in models:
            model.learn_one({"a": i % 5, "b": i % 3}, i % 5)
        for x, y in (({"a": 1, "b": math.inf}, 1.0), ({"a": 1, "b": 7}, math.nan), ({"a": "word", "b": 7}, 1.0)):
            with pytest.raises((ValueError, TypeError)):
                models[0].learn_one(x, y)
        assert models[0].n_waiting == models[1].n_waiting
    for model in models:
        model.learn_waiting()
    assert models[0].n_waiting == 0
    assert models[0].predict_one({"a": 2}) == models[1].predict_one({"a": 2})  # "b" has its mean


def test_a_model_is_copied_with_the_rows_that_wait():
    model = CNDPMAnomaly(memory_size=20, batch_size=7, surprise=math.inf)
    for x, _ in unlabelled(60):
        model.learn_one(x)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.n_waiting == model.n_waiting == 59 % 7
    for x, _ in unlabelled(60):
        model.learn_one(x)
        copied.learn_one(x)
        assert model.score_one(x) == copied.score_one(x)


def clusters(n, *, flip_at=None, seed=3):
    """Rows of two classes that are far apart; the labels are exchanged at a row."""
    draws = random.Random(seed)
    for i in range(n):
        label = draws.random() < 0.5
        x = {"a": draws.gauss(6 * label, 1), "b": draws.gauss(0, 1)}
        yield x, label != (flip_at is not None and i >= flip_at)


def test_rows_that_are_foreseen_wait_and_one_that_contradicts_is_learned_at_once_with_them():
    model = CNDPMClassifier(memory_size=20, batch_size=10)
    for x, y in clusters(200):
        model.learn_one(x, y)
    model.learn_waiting()
    n_learned = model.estimator.learner_.events.n_samples
    for n_waiting in (1, 2, 3):
        model.learn_one({"a": 6.0, "b": 0.0}, True)
        assert model.n_waiting == n_waiting
    model.learn_one({"a": 6.0, "b": 0.0}, False)
    assert model.n_waiting == 0
    assert model.estimator.learner_.events.n_samples == n_learned + 4


def test_surprise_is_counted_beyond_what_the_answer_expects():
    model = CNDPMClassifier()
    for x, y in clusters(30):
        model.learn_one(x, y)
    certain, even = np.log([1 - 1e-9, 1e-9]), np.log([0.5, 0.5])
    labels = model.estimator._codec.labels
    assert model._surprise(even, labels[0]) == pytest.approx(0)
    assert model._surprise(certain, labels[0]) == pytest.approx(0, abs=1e-6)
    assert model._surprise(certain, labels[1]) == pytest.approx(9 * math.log(10), rel=1e-3)
    assert CNDPMRegressor()._surprise(np.array([1.0, 4.0]), 5.0) == pytest.approx((4 - 1) / 2)  # two deviations
    assert CNDPMAnomaly()._surprise(np.array(3.0), None) == 2.0


def test_small_surprises_add_up():
    patient, hasty = (CNDPMRegressor(memory_size=20, surprise=s) for s in (math.inf, 0.5))
    draws = random.Random(4)
    for _ in range(200):
        x = {"a": draws.gauss(0, 1)}
        for model in (patient, hasty):
            model.learn_one(x, x["a"] + draws.gauss(0, 0.1))
    for model in (patient, hasty):
        model.learn_waiting()
    mean, variance = hasty._answer(hasty._columns.row({"a": 0.5})).tolist()
    for i in range(4):  # 1.2 deviations away each, 0.22 nats
        for model in (patient, hasty):
            model.learn_one({"a": 0.5}, mean + 1.2 * math.sqrt(variance))
        assert (patient.n_waiting, hasty.n_waiting) == (i + 1, (i + 1) % 3)


def test_questions_do_not_change_what_is_learned():
    asked, silent = CNDPMClassifier(memory_size=20), CNDPMClassifier(memory_size=20)
    for x, y in clusters(150, flip_at=90):
        asked.predict_proba_one({"a": 1.0, "b": 2.0})
        asked.predict_proba_one(x)
        for model in (asked, silent):
            model.learn_one(x, y)
        assert asked.n_waiting == silent.n_waiting
    assert asked.predict_proba_one(x) == silent.predict_proba_one(x)


@pytest.mark.parametrize("surprise", [-1, math.nan, "much", True])
def test_a_surprise_is_a_number_of_nats(surprise):
    with pytest.raises(ValueError, match="surprise must be a number of nats, at least 0; got"):
        CNDPMClassifier(surprise=surprise)


def test_a_batch_has_at_least_one_row():
    with pytest.raises(ValueError, match="batch_size must be a whole number of rows, at least 1; got 0"):
        CNDPMClassifier(batch_size=0)
