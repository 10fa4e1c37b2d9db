"""Columns that come while the stream runs, words, and what stands where nothing came."""

import math
import numbers
import pickle
import random
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from river.datasets import synth

from cndpm import CNDPMClassifier as Estimator
from cndpm.estimators.missing import fill_missing
from cndpm.river import CNDPMAnomaly, CNDPMClassifier, CNDPMRegressor
from cndpm.river.columns import Columns
from cndpm.river.kept import Kept
from cndpm.river.mixture import _KEPT, _SHARE, _SOON
from river import compose, evaluate, metrics, preprocessing


def columns_of(*rows):
    columns = Columns()
    for row in rows:
        columns = columns.taking(row)[0]
    return columns


def test_a_number_has_one_column_and_a_word_one_for_each_that_came():
    columns = columns_of({"b": True, "a": 2, "c": "x"}, {"c": "y", "a": "?"})
    assert list(columns.places) == [("a", None), ("b", None), ("c", "x"), ("c", "y"), ("a", "?")]
    assert columns.row({"a": 5, "b": np.bool_(False), "c": "y"}).tolist() == [[5, 0, 0, 1, 0]]
    np.testing.assert_equal(columns.row({"c": "z", "a": "?", "b": None}), [[np.nan, 0, 0, 0, 1]])


def test_what_did_not_come_is_missing_unless_it_is_a_flag():
    columns = columns_of({"one": 1, "two": 2, "truth": True}, {"truth": False, "late": 1, "size": 3.5}, {"late": 0})
    np.testing.assert_equal(columns.row({}), [[0, np.nan, np.nan, 0, np.nan]])
    assert columns.taking({"late": 1, "one": 1})[0] is columns
    np.testing.assert_equal(columns.taking({"late": 2, "one": 0})[0].row({}), np.full((1, 5), np.nan))


def test_a_row_that_is_taken_is_the_one_that_is_asked_about():
    columns = Columns()
    for x in ({"a": 1.5, "b": 1}, {"b": True, "a": -2.5}, {"a": 3.5, "c": "x"}, {"a": "y", "b": 7}, {"d": None}):
        columns, row = columns.taking(x)
        np.testing.assert_array_equal(row, columns.row(x))
        assert columns.taking(x)[0] is columns


def test_what_pandas_and_databases_hold_is_missing_or_a_number():
    frame = pd.DataFrame({"a": pd.array([7, None], dtype="Int64"), "b": pd.to_datetime(["2020-01-01", None])})
    late = {"a": frame["a"][1], "b": frame["b"][1], "c": Decimal("0.5")}
    columns = Columns().taking({"a": frame["a"][0], "c": 2.0})[0]
    np.testing.assert_array_equal(columns.row(late), [[np.nan, 0.5]])
    assert len(columns.taking(late)[0]) == 2
    with pytest.raises(TypeError, match="'b' is Timestamp"):
        columns.row({"b": frame["b"][0]})


def test_columns_end_where_there_are_a_thousand():
    columns = columns_of({"a": 1.5})
    with pytest.warns(UserWarning, match="1000 columns now.*that brought one is 'word', now '998'"):
        for i in range(1002):
            columns = columns.taking({"word": str(i)})[0]
    assert len(columns) == 1000 and np.nansum(columns.row({"word": "1001"})) == 0


def test_kept_rows_are_all_then_the_latest_and_a_uniform_sample_of_those_before():
    kept = Kept(capacity=40, seed=0)
    for i in range(40):
        kept.add(i)
    assert list(kept) == list(range(40))
    sums = np.zeros(4)
    for seed in range(60):
        kept = Kept(capacity=40, seed=seed)
        for i in range(400):
            kept.add(i)
        assert list(kept)[20:] == list(range(380, 400)) and list(kept) == sorted(kept)
        sums += np.histogram(list(kept)[:20], bins=4, range=(0, 380))[0]
    assert sums / 60 == pytest.approx(5, abs=1)


def growing(n, seed=0):
    """Rows of which "late" decides from row 60 on, and has no meaning before."""
    draws = random.Random(seed)
    for i in range(n):
        x = {"a": draws.gauss(0, 1), "b": draws.gauss(5, 1)}
        if i >= 60:
            x["late"] = draws.gauss(20, 3)
        yield x, x.get("late", 20) > 20


def test_a_late_column_is_used_as_if_it_had_been_missing_before():
    model, rows = CNDPMClassifier(memory_size=50, batch_size=1), list(growing(60 + _SOON + 1))
    for x, y in rows[:-1]:
        model.learn_one(x, y)
    assert model._n_used == 2
    model.learn_one(*rows[-1])
    assert model._n_used == 3
    values = np.array([[x["a"], x["b"], x.get("late", np.nan)] for x, _ in rows])
    values = values.astype(np.float32)
    np.testing.assert_equal(model._values(list(model._kept)), values)
    estimator = Estimator(memory_size=50, batch_size=10, random_state=0)
    estimator.partial_fit(fill_missing(values, values[60:]), [y for _, y in rows])
    asked = np.array([[0.0, 5.0, 25.0]], dtype=np.float32)
    proba = dict(zip(estimator.classes_.tolist(), estimator.predict_proba(asked, when="next")[0].tolist(), strict=True))
    assert model.predict_proba_one({"a": 0.0, "b": 5.0, "late": 25.0}) == proba


def test_a_late_column_decides_once_it_is_used():
    model = CNDPMClassifier(memory_size=50)
    for x, y in growing(300):
        model.learn_one(x, y)
    assert model.predict_one({"a": 0.0, "b": 5.0, "late": 25.0}) is True
    assert model.predict_one({"a": 0.0, "b": 5.0, "late": 15.0}) is False
    assert 0.1 < model.predict_proba_one({"a": 0.0, "b": 5.0})[True] < 0.9  # it stopped coming


def test_columns_that_keep_coming_cost_a_bounded_number_of_foundings():
    model, n_founded = CNDPMRegressor(memory_size=50), 0
    for i in range(200):
        before = model.estimator
        model.learn_one({"a": float(i % 7), f"new {i}": 1}, float(i % 7))
        n_founded += model.estimator is not before
    assert n_founded <= 1 + _SHARE + math.log(200 / (_SOON * _SHARE)) / math.log(1 + 1 / _SHARE)
    assert abs(model.predict_one({"a": 3.0}) - 3) < 1


def test_a_late_column_waits_for_one_row_in_so_many_of_those_before():
    model, draws = CNDPMClassifier(memory_size=50), random.Random(0)
    for i in range(280):
        x = {"a": draws.gauss(0, 1)} if i < 240 else {"a": draws.gauss(0, 1), "late": draws.gauss(0, 1)}
        model.learn_one(x, x["a"] > 0)
        if i < 240 * (1 + 1 / _SHARE):
            assert model._n_used == 1
    assert model._n_used == 2


def test_a_row_that_is_refused_brings_no_columns():
    model = CNDPMRegressor(memory_size=20)
    for i in range(20):
        model.learn_one({"a": float(i % 5)}, float(i % 5))
    before = model._columns
    for x, y in (({"a": 1.0, "new": 2.0}, math.nan), ({"new": 1, "a": [1]}, 1.0)):
        with pytest.raises((ValueError, TypeError)):
            model.learn_one(x, y)
    with pytest.raises(ValueError, match="infinite"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0], "new": [1.0, math.inf]}), pd.Series([1.0, 2.0]))
    assert model._columns is before


@pytest.mark.parametrize("number", [math.inf, -math.inf, 1e39])
def test_a_number_that_is_infinite_or_too_large_is_refused_with_its_column(number):
    columns = columns_of({"a": 1.0, "b": 2.0})
    with pytest.raises(ValueError, match="too large for 32 bits; 'b' is"):
        columns.row({"a": 1.0, "b": number})


def mixed(n, seed=0):
    draws = random.Random(seed)
    for _ in range(n):
        x = {"size": draws.gauss(0, 1), "colour": draws.choice(["red", "green", "blue"]), "new": draws.random() < 0.5}
        yield x, (x["colour"] == "red") == x["new"] if x["size"] > -1 else "small"


def one_hot(model, **options):
    words = compose.SelectType(str) | preprocessing.OneHotEncoder(**options)
    return words + compose.SelectType(numbers.Number) | model


def test_words_serve_as_rivers_one_hot_encoder_does():
    scores = []
    for model in (
        CNDPMClassifier(memory_size=100),
        *(one_hot(CNDPMClassifier(memory_size=100), drop_zeros=z) for z in (0, 1)),
    ):
        scores.append(evaluate.progressive_val_score(mixed(500), model, metrics.Accuracy()).get())
    assert min(scores) > 0.85 and max(scores) - min(scores) < 0.02


def stagger(*rules):
    for rule in rules:
        for x, y in synth.STAGGER(classification_function=rule, seed=rule).take(1000):
            yield {name: f"{name} {value}" for name, value in x.items()}, y


@pytest.mark.slow
@pytest.mark.parametrize("rule", range(3))
def test_the_one_hot_idiom_is_near_what_all_columns_told_at_first_give(rule):
    names = sorted({(name, word) for x, _ in stagger(rule) for name, word in x.items()})
    told = (({f"{n}_{w}": float(x[n] == w) for n, w in names}, y) for x, y in stagger(rule))
    best = evaluate.progressive_val_score(told, CNDPMClassifier(), metrics.Accuracy()).get()
    found = evaluate.progressive_val_score(stagger(rule), one_hot(CNDPMClassifier()), metrics.Accuracy()).get()
    assert found > best - 0.005


@pytest.mark.slow
def test_the_one_hot_idiom_follows_rules_that_change():
    found = evaluate.progressive_val_score(stagger(0, 1, 2), one_hot(CNDPMClassifier()), metrics.Accuracy()).get()
    assert found > 0.97


@pytest.mark.slow
def test_words_of_loans_are_worth_what_a_column_for_each_of_them_gives():
    """River's Agrawal, rules 0, 4 and 0: with 34 words numbers had five thresholds each, and parts became rules."""

    def loans():
        for seed, rule in enumerate((0, 4, 0)):
            for x, y in synth.Agrawal(classification_function=rule, seed=seed).take(2000):
                yield {n: f"{n} {v}" if n in ("elevel", "car", "zipcode") else v for n, v in x.items()}, y

    found = evaluate.progressive_val_score(loans(), one_hot(CNDPMClassifier()), metrics.Accuracy()).get()
    assert found > 0.89


def test_a_row_with_a_gap_is_answered_for_the_row_that_comes_next_too():
    classifier, regressor = CNDPMClassifier(memory_size=50), CNDPMRegressor(memory_size=50, batch_size=1)
    draws = random.Random(0)
    for i in range(301):  # x tells nothing; labels come in runs of ten
        x = {"a": draws.random(), "b": draws.random()}
        classifier.learn_one(x, i // 10 % 2)
        regressor.learn_one(x, float(i // 10 % 2))
    assert classifier.predict_proba_one({"a": 0.5})[0] > 0.65
    assert regressor.predict_one({"a": 0.5}) < 0.35


def test_words_of_a_regression_and_of_a_detector():
    regressor, detector, draws = CNDPMRegressor(memory_size=50), CNDPMAnomaly(memory_size=50), random.Random(0)
    for _ in range(150):
        x = {"colour": draws.choice(["red", "blue"]), "a": draws.gauss(0, 1)}
        regressor.learn_one(x, 10 * (x["colour"] == "red") + x["a"])
        detector.learn_one(x)
    assert regressor.predict_one({"colour": "red", "a": 0.0}) == pytest.approx(10, abs=1)
    assert regressor.predict_one({"colour": "blue", "a": 0.0}) == pytest.approx(0, abs=1)
    assert detector.score_one({"colour": "red", "a": 0.0}) < 0.9 < detector.score_one({"colour": "red", "a": 9.0})


def test_a_model_with_late_columns_is_copied_whole():
    model = CNDPMClassifier(memory_size=50)
    rows = list(mixed(50)) + list(growing(80))
    for x, y in rows[:55]:
        model.learn_one(x, y)
    copied = pickle.loads(pickle.dumps(model))
    for x, y in rows[55:]:
        for each in (model, copied):
            each.learn_one(x, y)
        assert model.predict_proba_one(x) == copied.predict_proba_one(x)
    assert model._n_used == copied._n_used > 5 and len(rows) <= _KEPT
