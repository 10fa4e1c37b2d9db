"""river's own checks, its pipelines and its evaluation, and features that come and go."""

import collections
import datetime
import inspect
import itertools
import math
import random
import re

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
            expected = dict(
                zip(estimator.classes_.tolist(), estimator.predict_proba(row, when="next")[0].tolist(), strict=True)
            )
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


def test_a_missing_feature_is_completed_as_the_estimator_does_and_one_that_never_came_is_left_out():
    model = CNDPMRegressor(memory_size=20)
    for a, b in itertools.product(range(10), range(10)):
        model.learn_one({"a": a, "b": b}, float(a))
    hole = np.array([[np.nan, 3.0]])
    expected = float(model.estimator.predict(hole, when="next")[0])
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


def test_what_is_neither_a_number_nor_a_word_is_refused_with_advice():
    with pytest.raises(TypeError, match=r"'day' is datetime.date\(2026, 1, 2\), a date.*compose.Discard\('day'\)"):
        CNDPMClassifier().learn_one({"day": datetime.date(2026, 1, 2)}, True)
    for row in ({}, {"a": None}, {"a": math.nan, "b": pd.NA}):
        with pytest.raises(ValueError, match="the first row that is learned has no features"):
            CNDPMAnomaly().learn_one(row)


def test_a_wrong_argument_is_refused_with_the_one_that_was_meant():
    with pytest.raises(TypeError, match=r"CNDPMClassifier has no parameter 'memory'\. Did you mean memory_size\?"):
        CNDPMClassifier(memory=50)
    with pytest.raises(ValueError, match="memory_size"):
        CNDPMRegressor(memory_size=-1)
    with pytest.raises(ValueError, match="Did you mean"):
        CNDPMAnomaly(settings={"novelt": "auto"})


@pytest.mark.parametrize(
    ("model", "call", "given", "words"),
    [
        (CNDPMClassifier, "learn_one", {"weigth": 2}, "learn_one has no parameter 'weigth'. Did you mean w?"),
        (CNDPMRegressor, "learn_one", {"sample_weight": 2}, "no parameter 'sample_weight'. Did you mean w?"),
        (CNDPMRegressor, "learn_many", {"Y": [1.0]}, "learn_many has no parameter 'Y'. Did you mean y?"),
        (CNDPMRegressor, "predict_one", {"with_intervall": True}, "'with_intervall'. Did you mean with_interval?"),
        (CNDPMRegressor, "predict_one", {"coverage": 0.9}, "'coverage'. Did you mean confidence_level?"),
        (CNDPMAnomaly, "learn_one", {"w": 2}, "learn_one has no parameter 'w'. It has x."),
    ],
)
def test_a_wrong_argument_of_a_method_is_refused_with_the_one_that_was_meant(model, call, given, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        getattr(model(), call)({"a": 1.0}, **given)


def test_other_mistakes_in_a_call_keep_their_words_and_methods_their_signatures():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        CNDPMRegressor().learn_one({"a": 1.0})
    assert list(inspect.signature(CNDPMClassifier().learn_one).parameters) == ["x", "y", "w"]  # by which river passes w


def test_a_row_of_weight_three_is_learned_three_times_and_one_of_none_not_at_all():
    weighted, repeated = CNDPMClassifier(memory_size=50), CNDPMClassifier(memory_size=50)
    for i, (x, y) in enumerate(datasets.Phishing().take(60)):
        w = (1, 3, 0)[i % 3]
        weighted.learn_one(x, y, w=w)
        weighted.learn_waiting()
        if w:
            repeated.estimator.partial_fit(repeated._columns.taking(x)[0].row(x), [y], sample_weight=[w])
    assert weighted.estimator._codec.counts == repeated.estimator._codec.counts
    assert sum(weighted.estimator._codec.counts) == 80
    with pytest.raises(ValueError, match="w is how often a row counts, from 0 to 1000; got -1"):
        weighted.learn_one(x, y, w=-1)


def test_weights_of_classes_multiply_probabilities_as_the_estimators_do():
    rows = list(datasets.Phishing().take(120))
    plain, weighted = CNDPMClassifier(memory_size=50), CNDPMClassifier(memory_size=50, class_weight={True: 4})
    for x, y in rows:
        plain.learn_one(x, y)
        weighted.learn_one(x, y)
    before, after = plain.predict_proba_one(x), weighted.predict_proba_one(x)
    expected = 4 * before[True] / (4 * before[True] + before[False])
    assert after[True] == pytest.approx(expected)
    assert weighted.predict_proba_many(pd.DataFrame([x]))[True][0] == pytest.approx(expected)
    assert weighted.clone().class_weight == {True: 4}
    with pytest.raises(ValueError, match="class_weight is 'balanced'"):
        CNDPMClassifier(class_weight="equal")


def test_an_interval_holds_as_many_targets_as_it_says():
    model, draws, is_inside = CNDPMRegressor(memory_size=100), random.Random(0), []
    assert model.predict_one({"a": 1.0}, with_interval=True).width == math.inf
    for i in range(350):
        x = {"a": draws.gauss(0, 1)}
        y = 3 * x["a"] + draws.gauss(0, 0.5)
        if i >= 100:
            is_inside.append(y in model.predict_one(x, with_interval=True, confidence_level=0.8))
        model.learn_one(x, y)
    assert np.mean(is_inside) == pytest.approx(0.8, abs=0.06)
    interval = model.predict_one({"a": 1.0}, with_interval=True, confidence_level=0.8)
    assert interval.center == pytest.approx(model.predict_one({"a": 1.0}))
    with pytest.raises(ValueError, match="confidence_level is a probability between 0 and 1; got 80"):
        model.predict_one({"a": 1.0}, with_interval=True, confidence_level=80)


def test_a_drift_is_detected_where_an_expert_is_founded_and_only_there():
    model, draws, detected = CNDPMClassifier(memory_size=50), random.Random(0), []
    for i in range(250):
        shift = 50 * (i >= 120)
        label = draws.random() < 0.5
        model.learn_one({"a": draws.gauss(shift, 1), "b": draws.gauss(shift + 6 * label, 1)}, (label, shift > 0))
        if model.drift_detected:
            detected.append(i)
    drifts = [event for event in model.events if event.kind != "founded" or event.expert > 0]
    assert 0 < len(detected) <= len(drifts) and 120 < detected[0] < 250
    assert not model.clone().drift_detected


class Unreadable(dict):
    """A row that raises when it is asked for a feature."""

    def items(self):
        raise KeyError("items")


class Uncounted(collections.UserDict):
    """A row that raises when it is asked how many features it has."""

    def __len__(self):
        raise KeyError("len")


class Raising:
    """Raises whatever it is asked."""

    def __getattr__(self, name):
        raise LookupError(name)

    def __iter__(self):
        raise LookupError("iter")

    def __repr__(self):
        raise LookupError("repr")


class RaisingNumber(float):
    """A number that raises when it is compared."""

    def __le__(self, other):
        raise LookupError("le")

    def __ge__(self, other):
        raise LookupError("ge")


@pytest.mark.parametrize("model", [CNDPMClassifier, CNDPMRegressor, CNDPMAnomaly])
@pytest.mark.parametrize("row", [[1.0], "ab", None, 3, {"a": 10**400}, Unreadable(a=1.0), {"a": Raising()}])
def test_rows_that_are_no_features_are_refused_and_change_nothing(model, row):
    made, y = model(), () if model is CNDPMAnomaly else (1,)
    with pytest.raises((TypeError, ValueError)):
        made.learn_one(row, *y)
    made.learn_one({"a": 1.0}, *y)
    ask = {CNDPMClassifier: "predict_proba_one", CNDPMRegressor: "predict_one", CNDPMAnomaly: "score_one"}[model]
    with pytest.raises((TypeError, ValueError)):
        getattr(made, ask)(row)
    assert list(made._columns.places) == [("a", None)]


def test_targets_and_tables_that_cannot_be_read_are_refused():
    model, table = CNDPMRegressor(), pd.DataFrame({"a": [1.0, 2.0]})
    for y in (10**400, None, "x", [1]):
        with pytest.raises((TypeError, ValueError)):
            model.learn_one({"a": 1.0}, y)
    for X, y in ((table, [1.0, 10**400]), (table, [1.0]), ([[1.0]], [1.0]), (None, [1.0])):
        with pytest.raises((TypeError, ValueError)):
            model.learn_many(X, y)
    assert (model.n_waiting, model._has_learned) == (0, False)


@pytest.mark.parametrize("model", [CNDPMClassifier, CNDPMRegressor, CNDPMAnomaly])
def test_objects_that_raise_what_they_like_are_refused_wherever_they_stand(model):
    made, table = model(), pd.DataFrame({"a": [1.0, 2.0]})
    y = () if model is CNDPMAnomaly else (1,)
    calls = [lambda: made.learn_one(Uncounted(a=1.0), *y), lambda: made.learn_many(Raising(), *y)]
    if y:
        many = {CNDPMClassifier: "predict_proba_many", CNDPMRegressor: "predict_many"}[model]
        calls += [lambda: made.learn_one({"a": 1.0}, Raising()), lambda: made.learn_many(table, Raising())]
        calls += [lambda: made.learn_one({"a": 1.0}, 1, w=RaisingNumber(1)), lambda: getattr(made, many)(Raising())]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    made.learn_one({"a": 1.0}, *y)
    with pytest.raises(TypeError, match="x cannot be read"):
        made.learn_one({"a": 1.0, Raising(): 1e300}, *y)
    assert list(made._columns.places) == [("a", None)]


def test_a_label_of_a_derived_type_waits_as_what_it_equals():
    model, own = CNDPMClassifier(batch_size=5, surprise=math.inf), type("Own", (str,), {})
    for label in ("a", own("a"), own("a")):
        model.learn_one({"a": 1.0}, label)
    assert [type(row.y) for row in model._waiting] == [str, str]


def test_wrong_weights_targets_and_questions_are_told_in_words():
    classifier, regressor = CNDPMClassifier(), CNDPMRegressor()
    for w in ("3", None, -1, math.nan, [1]):
        with pytest.raises(ValueError, match="w is how often a row counts, from 0 to 1000; got"):
            classifier.learn_one({"a": 1.0}, True, w=w)
    for y in (None, "x", [1]):
        with pytest.raises(TypeError, match=r"y is a number; got .*, a (NoneType|str|list)"):
            regressor.learn_one({"a": 1.0}, y)
    with pytest.raises(TypeError, match=r"predict_proba_one has no parameter 'with_interval'\. It has x\."):
        classifier.predict_one({"a": 1.0}, with_interval=True)


@pytest.mark.parametrize("model", [CNDPMClassifier, CNDPMRegressor, CNDPMAnomaly])
def test_a_value_that_is_too_large_in_a_column_that_waits_keeps_nothing_from_being_learned(model):
    made, draws = model(memory_size=30, settings={"features": "identity"}), random.Random(0)
    for i in range(120):
        x = {"a": draws.gauss(0, 1), "b": draws.gauss(0, 1)} | ({"new": 1e30} if i == 31 else {})
        x |= {"new": draws.gauss(0, 1)} if i > 70 else {}
        made.learn_one(x, *(() if model is CNDPMAnomaly else (i % 2,)))
    made.learn_waiting()
    assert made._n_used == 3 and made.estimator.n_features_in_ == 3
    assert np.abs(made.estimator.learner_.watch.rows).max() < 100


def test_an_infinite_number_is_refused_at_once_even_in_a_column_that_waits_to_be_used():
    model = CNDPMAnomaly()
    for i in range(30):
        model.learn_one({"a": float(i % 7)})
    for value in (math.inf, -math.inf, 1e300):
        with pytest.raises(ValueError, match="nor too large for 32 bits; 'new' is"):
            model.learn_one({"a": 1.0, "new": value})
    for i in range(200):
        model.learn_one({"a": float(i % 7), "new": float(i % 5)})
    assert math.isfinite(model.score_one({"a": 1.0, "new": 2.0}))
