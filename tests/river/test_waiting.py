"""Rows that wait for each other, until they are enough or surprise."""

import itertools
import math
import pickle
import random

import numpy as np
import pytest
import torch

from cndpm import CNDPMClassifier as Estimator
from cndpm.river import CNDPMAnomaly, CNDPMClassifier, CNDPMRegressor
from river import datasets


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
                learner, codec = estimator.learner_, estimator._codec
                since = [codec.find(label) for _, label in rows[start : start + i]]  # those that wait are known
                asked = torch.from_numpy(X[i : i + 1].astype(np.float32))
                proba = learner.predict_log_proba(asked, when="next", since=since)[0].exp().tolist()
                assert model.predict_proba_one(x) == pytest.approx(
                    dict(zip(codec.labels, proba, strict=True)), abs=1e-12
                )
            model.learn_one(x, y)
        estimator.partial_fit(X, [y for _, y in rows[start:stop]])
        estimator.learner_.places.row_by_row = True
    assert model.events == estimator.events_ and model.n_experts == estimator.n_experts_ > 0


def test_a_row_that_is_refused_changes_neither_what_waits_nor_the_means():
    models = [CNDPMRegressor(memory_size=20, batch_size=4) for _ in range(2)]
    for i in range(12):
        for model in models:
            model.learn_one({"a": i % 5, "b": i % 3}, i % 5)
        for x, y in (({"a": 1, "b": math.inf}, 1.0), ({"a": 1, "b": 7}, math.nan), ({"a": [1], "b": 7, "c": 8}, 1.0)):
            with pytest.raises((ValueError, TypeError)):
                models[0].learn_one(x, y)
        assert models[0].n_waiting == models[1].n_waiting
    for model in models:
        model.learn_waiting()
    assert models[0].n_waiting == 0
    assert models[0].predict_one({"a": 2}) == models[1].predict_one({"a": 2})  # "b" has its mean


def test_a_model_is_copied_with_the_rows_that_wait():
    model, draws = CNDPMAnomaly(memory_size=20, batch_size=7, surprise=math.inf), random.Random(5)
    rows = [{f"v{j}": draws.gauss(0, 1) for j in range(5)} for _ in range(60)]
    for x in rows:
        model.learn_one(x)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.n_waiting == model.n_waiting == 59 % 7
    for x in rows:
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


def test_an_answer_is_kept_until_something_is_learned_and_no_longer():
    model, x = CNDPMClassifier(memory_size=20), {"a": 3.0, "b": 0.0}
    for row, y in clusters(60):
        model.learn_one(row, y)
    before = model.predict_proba_one(x)
    assert model.predict_proba_one(x) == before
    for _ in range(12):
        model.learn_one(x, True)
        model.predict_proba_one(x)
    model.learn_waiting()
    after = model.predict_proba_one(x)
    assert after[True] > before[True] + 0.01
    row = torch.from_numpy(model._columns.row(x))
    assert list(after.values()) == np.exp(model._learner.predict_log_proba(row, when="next")[0].numpy()).tolist()


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


def test_a_first_row_that_is_refused_names_no_features():
    model = CNDPMRegressor()
    with pytest.raises(ValueError, match="infin"):
        model.learn_one({"a": math.inf}, 1.0)
    for i in range(30):
        model.learn_one({"b": float(i % 5)}, float(i % 5))
    assert model.predict_one({"b": 4.0}) > model.predict_one({"b": 1.0}) + 1


def test_none_is_a_label_like_others():
    model = CNDPMClassifier(memory_size=20)
    for x, y in clusters(120):
        model.learn_one(x, "far" if y else None)
    assert model.predict_one({"a": 0.0, "b": 0.0}) is None and model.predict_one({"a": 6.0, "b": 0.0}) == "far"


def test_a_batch_has_at_least_one_row():
    with pytest.raises(ValueError, match="batch_size must be at least 1; got 0"):
        CNDPMClassifier(batch_size=0)
