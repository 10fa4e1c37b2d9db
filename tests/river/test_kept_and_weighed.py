"""Rows that are learned again in their order, weights that reach the model, and answers by their formulas."""

import math
import pickle
import random

import numpy as np
import pandas as pd
import pytest

from cndpm.model.events import Event
from cndpm.river import CNDPMAnomaly, CNDPMClassifier, CNDPMRegressor
from cndpm.river.mixture import _is_drift


def rows(n, seed=0):
    draws = random.Random(seed)
    return [{"a": draws.gauss(0, 1), "b": draws.gauss(5, 1)} for _ in range(n)]


class Noting(CNDPMRegressor):
    """Notes what is learned, in the order in which it is, and whether a model is founded on it."""

    def _learn(self, estimator, values, learned, **given):
        noted = self.__dict__.setdefault("noted", [])
        noted.append((estimator is not self.estimator, [row.y for row in learned], [row.weight for row in learned]))
        super()._learn(estimator, values, learned, **given)


def test_kept_rows_are_learned_again_in_the_order_they_came():
    model = Noting(memory_size=30)
    for i, x in enumerate(rows(80)):
        model.learn_one(x if i < 40 else x | {"late": float(i)}, float(i))
    founded = [targets for anew, targets, _ in model.noted if anew and len(targets) > 1]
    assert founded
    for targets in founded:
        assert targets == [float(i) for i in range(len(targets))]


def test_weights_reach_the_model_and_rows_without_one_do_not(monkeypatch):
    model, given = CNDPMRegressor(memory_size=30, batch_size=4, surprise=math.inf), []
    for i, x in enumerate(rows(20)):
        model.learn_one(x, float(i))
    model.learn_waiting()
    learn = model.estimator.partial_fit
    monkeypatch.setattr(
        model.estimator, "partial_fit", lambda X, y, **more: given.append((y, more)) or learn(X, y, **more)
    )
    for y, weight in ((1.0, 2.0), (2.0, 0.0), (3.0, 1.0), (4.0, 0.5), (5.0, 1.0)):
        model.learn_one({"a": 0.0, "b": 5.0}, y, w=weight)
    assert given == [([1.0, 3.0, 4.0, 5.0], {"sample_weight": [2.0, 1.0, 0.5, 1.0]})]
    assert model.n_waiting == 0
    for weight in (-1.0, 1000.1, math.inf, math.nan):  # the estimator would refuse them, and all rows that wait beside
        with pytest.raises(ValueError, match="w is how often a row counts"):
            model.learn_one({"a": 0.0, "b": 5.0}, 1.0, w=weight)
    assert model.n_waiting == 0


def test_a_surprise_counts_as_often_as_its_row_and_is_forgotten_once_learned():
    light, heavy = (CNDPMAnomaly(memory_size=30, batch_size=10, surprise=1.0) for _ in range(2))
    for x in rows(100):
        light.learn_one(x)
        heavy.learn_one(x)
    for model in (light, heavy):
        model.learn_waiting()
        assert model._surprised == 0
    x = next(x for x in rows(50, seed=1) if 1.4 < -math.log1p(-light.score_one(x)) < 1.9)
    light._take(x, None, 1.0)
    heavy._take(x, None, 3.0)
    assert (light.n_waiting, heavy.n_waiting) == (1, 0)
    assert 0.4 < light._surprised < 0.9 and heavy._surprised == 0
    light.learn_waiting()
    assert light._surprised == 0


def test_a_score_is_one_less_the_share_and_ordinary_rows_surprise_by_nothing():
    model = CNDPMAnomaly(memory_size=30)
    for x in rows(150):
        model.learn_one(x)
    model.learn_waiting()
    for x in rows(5, seed=1):
        novelty = model.estimator.novelty([[x["a"], x["b"]]])[0]
        assert model.score_one(x) == pytest.approx(1 - math.exp(-novelty))
    assert model._surprise(np.float64(1.0), None) == 0


def test_an_interval_is_that_of_a_normal_answer():
    model = CNDPMRegressor(memory_size=30)
    for i, x in enumerate(rows(60)):
        model.learn_one(x, 3 * x["a"] + (i % 3))
    mean, variance = model._moments({"a": 0.5, "b": 5.0})
    assert model.predict_one({"a": 0.5, "b": 5.0}) == mean
    for level, away in ((0.95, 1.959964), (0.5, 0.674490)):
        interval = model.predict_one({"a": 0.5, "b": 5.0}, with_interval=True, confidence_level=level)
        assert interval.upper - mean == pytest.approx(away * math.sqrt(variance), rel=1e-5)
        assert mean - interval.lower == pytest.approx(away * math.sqrt(variance), rel=1e-5)


def test_tables_of_probabilities_have_columns_in_order_and_sum_to_one():
    model = CNDPMClassifier(memory_size=30, class_weight={"c": 3.0})
    for i, x in enumerate(rows(60)):
        model.learn_one(x | {"a": x["a"] + 3 * (i % 3)}, "cab"[i % 3])
    table = model.predict_proba_many(pd.DataFrame(rows(4, seed=1)))
    assert list(table.columns) == ["a", "b", "c"]
    np.testing.assert_allclose(table.sum(axis=1), 1)


def test_a_row_of_which_nothing_is_known_has_the_mean_of_the_known_ones():
    model = CNDPMRegressor(memory_size=30)
    for x in rows(60):
        model.learn_one(x, x["b"])
    model.learn_waiting()
    kept = model._learner.watch.rows.mean(axis=0)
    assert model._known(np.full((1, 2), np.nan, dtype=np.float32)).tolist() == [kept.tolist()]


def test_a_pickled_model_answers_as_it_did():
    model = CNDPMRegressor(memory_size=30)
    for x in rows(60):
        model.learn_one(x, x["b"])
    copy = pickle.loads(pickle.dumps(model))
    assert copy.n_experts == model.n_experts > 0
    assert [copy.predict_one(x) for x in rows(5, 1)] == [model.predict_one(x) for x in rows(5, 1)]


def test_the_first_expert_is_no_drift_and_others_and_rules_are():
    def event(kind, expert=0):
        return Event(sample=1, kind=kind, expert=expert)

    assert not _is_drift(event("founded", 0)) and _is_drift(event("founded", 1))
    assert _is_drift(event("rule founded")) and _is_drift(event("returned"))


def test_a_drift_is_told_of_the_call_that_brought_it_alone():
    model = CNDPMClassifier(memory_size=30, batch_size=1)
    for i, x in enumerate(rows(140)):
        model.learn_one({"a": x["a"] + 60 * (i >= 70), "b": x["b"]}, (i % 2, i >= 70))
        told = [event.sample for event in model.events if _is_drift(event)]
        assert model.drift_detected == (bool(told) and told[-1] > i)
    assert told


def test_weights_of_classes_multiply_what_would_have_been_answered():
    plain, weighted = CNDPMClassifier(memory_size=30), CNDPMClassifier(memory_size=30, class_weight={"c": 3.0})
    for i, x in enumerate(rows(60)):
        for model in (plain, weighted):
            model.learn_one(x | {"a": x["a"] + i % 3}, "cab"[i % 3])
    before, after = (model.predict_proba_one({"a": 1.0, "b": 5.0}) for model in (plain, weighted))
    assert after["c"] / after["a"] == pytest.approx(3 * before["c"] / before["a"])


def test_labels_of_numpy_are_answered_as_plain_ones():
    model = CNDPMClassifier(memory_size=20)
    for i in range(30):
        model.learn_one({"a": float(i % 2)}, np.int64(i % 2))
    assert {type(label) for label in model.predict_proba_one({"a": 1.0})} == {int}


def test_probabilities_stand_under_their_own_labels_whatever_came_first():
    model = CNDPMClassifier(memory_size=20)
    for i in range(60):
        model.learn_one({"a": float(i % 2), "b": 0.3 * (i % 5) + 0.1}, "yn"[i % 2])
    assert model.predict_proba_one({"a": 0.0, "b": 0.4})["y"] > 0.8
    assert model.predict_proba_one({"a": 0.0})["y"] > 0.8  # completed
    table = model.predict_proba_many(pd.DataFrame({"a": [0.0], "b": [0.4]}))
    assert table.columns.tolist() == ["n", "y"] and table["y"][0] > 0.8


@pytest.mark.parametrize("x", [{"a": 0.5, "b": 5.0}, {"a": 0.5}], ids=["whole", "with a gap"])
def test_answers_of_a_regression_are_the_estimators_for_the_row_that_comes_next(x):
    model, draws, error = CNDPMRegressor(batch_size=1), random.Random(0), 0.0
    for row in rows(150):
        error = 0.9 * error + draws.gauss(0, 0.2)  # errors last
        model.learn_one(row, row["a"] + error)
    asked = np.array([[x["a"], x.get("b", np.nan)]], dtype=np.float32)
    mean, said = model.estimator.predict(asked, when="next")[0], model.predict_one(x)
    assert said == pytest.approx(mean) and abs(said - model.estimator.predict(asked)[0]) > 0.01
    interval = model.predict_one(x, with_interval=True, confidence_level=0.9)
    expected = model.estimator.predict_interval(asked, coverage=0.9, when="next")[0]
    assert [interval.lower, interval.upper] == pytest.approx(expected.tolist())
