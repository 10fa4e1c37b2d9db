import pickle
import sys
import tracemalloc
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn.utils.class_weight import compute_class_weight

from cndpm import CNDPMClassifier, CNDPMRegressor, merge
from cndpm.checks.case import same
from cndpm.estimators.weights import few_in_order, log_class_weights, times_learned

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] + 0.8 * RNG.normal(size=60) > 0, "up", "down")
WHOLE = RNG.integers(0, 4, size=60)
RULE = X[:, 0] > 0


def test_whole_weights_are_repetitions_to_the_bit():
    often = np.repeat(np.arange(60), WHOLE)
    weighted = CNDPMClassifier(memory_size=20, random_state=0).fit(X, Y, sample_weight=WHOLE)
    repeated = CNDPMClassifier(memory_size=20, random_state=0).fit(X[often], Y[often])
    assert np.array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    targets = X @ [1.0, 2.0, 0.0]
    weighted = CNDPMRegressor(memory_size=20, random_state=0).fit(X, targets, WHOLE)
    repeated = CNDPMRegressor(memory_size=20, random_state=0).fit(X[often], targets[often])
    assert np.array_equal(weighted.predict(X), repeated.predict(X))


@cache
def taught(kind, n, features):
    model = kind(memory_size=50, random_state=0, settings={"features": features} if features else None)
    x = np.random.default_rng(1).normal(size=(n, 3))
    return pickle.dumps(model.partial_fit(x, x[:, 0] > 0) if n else model)


@pytest.mark.parametrize("features", [None, "identity"])
@pytest.mark.parametrize("extreme", [(), (1e5,), (1e13,), (-1e13, 3e14, 2e12), (1e16,) * 6, (1e5,) * 20, (1e13,) * 20])
@pytest.mark.parametrize("n_before", [0, 40, 400])
@pytest.mark.parametrize("kind", [CNDPMClassifier, CNDPMRegressor])
def test_rows_that_are_repeated_as_they_are_learned_leave_the_same_state(kind, n_before, extreme, features):
    x, weights = X.copy(), np.append(WHOLE[:-1], 11 - WHOLE[:-1].sum() % 10)
    often = np.repeat(np.arange(60), weights)  # 1 more than whole batches
    for i, value in enumerate(extreme):
        x[20 + i, i % 3] = value
    y = RULE if kind is CNDPMClassifier else x.clip(-9, 9) @ [1.0, 2.0, 0.0]
    weighted, repeated = (pickle.loads(taught(kind, n_before, features)) for _ in range(2))
    weighted.partial_fit(x, y, sample_weight=weights)
    repeated.partial_fit(x[often], y[often])
    assert same(weighted._exported(), repeated._exported())


@pytest.mark.parametrize("kind", [CNDPMClassifier, CNDPMRegressor])
def test_rows_that_are_repeated_in_pieces_are_learned_one_after_the_other(kind, monkeypatch):
    monkeypatch.setattr("cndpm.estimators.journal._REPEATED", 25)  # two batches of ten
    often = np.repeat(np.arange(60), WHOLE)
    weighted, repeated = (kind(memory_size=20, random_state=0).partial_fit(X, RULE) for _ in range(2))
    weighted.partial_fit(X, RULE, sample_weight=WHOLE)
    for start in range(0, len(often), 20):
        repeated.partial_fit(X[often[start : start + 20]], RULE[often[start : start + 20]])
    assert same(weighted._exported(), repeated._exported())


def test_what_most_rows_are_is_told_with_their_weights():
    x = X[:20].copy()
    x[:12, 1] = 1e16
    few = np.repeat([1, 9], [12, 8])
    assert CNDPMRegressor(random_state=0).partial_fit(x, x[:, 0], sample_weight=few).n_experts_ == 0
    with pytest.raises(ValueError, match="values up to 1e"):
        CNDPMRegressor(random_state=0).partial_fit(x, x[:, 0], sample_weight=few[::-1])


@pytest.mark.parametrize("kind", [CNDPMClassifier, CNDPMRegressor])
def test_a_heavy_row_takes_no_more_memory_than_a_light_one(kind, monkeypatch):
    class Peak(Exception):
        """Ends a call with the first line that it says."""

        def write(self, line):
            self.line, self.bytes = line, tracemalloc.get_traced_memory()[1]
            raise self

    x, peaks = np.random.default_rng(0).normal(size=(2000, 20)), []
    model = kind(random_state=0).partial_fit(x[:30], x[:30, 0] > 0)
    model.partial_fit(x[:30], x[:30, 0] > 0, sample_weight=np.full(30, 4))  # is done again when a call is undone
    known = model.set_params(verbose=True)._exported()
    monkeypatch.setattr("cndpm.estimators.journal._AFTER", 0.0)
    for weight in (1, 500):
        peaks.append(Peak())
        monkeypatch.setattr(sys, "stderr", peaks[-1])
        peaks[-1].isatty = lambda: False
        tracemalloc.start()
        with pytest.raises(Peak):
            model.partial_fit(x, x[:, 0] > 0, sample_weight=np.full(2000, weight))
        tracemalloc.stop()
    assert same(model._exported(), known)
    assert " 10 of 1,000,000 samples" in peaks[1].line
    assert peaks[1].bytes < peaks[0].bytes + 10 * x.nbytes


def test_weights_of_1_change_nothing_and_those_of_0_are_not_learned():
    plain = CNDPMClassifier(memory_size=20, random_state=0).partial_fit(X, Y)
    ones = CNDPMClassifier(memory_size=20, random_state=0).partial_fit(X, Y, sample_weight=np.ones(60))
    ones.partial_fit(X[:2], ["new", Y[1]], sample_weight=[0, 1])
    plain.partial_fit(X[1:2], Y[1:2])
    assert ones.classes_.tolist() == ["down", "up"]
    assert np.array_equal(plain.predict_proba(X), ones.predict_proba(X))


def test_fractions_are_right_on_average_and_the_same_in_the_same_place():
    times = times_learned(np.full(4000, 0.3), np.zeros((4000, 1)), seed=5, n_before=7)
    assert set(times) == {0, 1} and abs(times.mean() - 0.3) < 0.03
    assert np.array_equal(times, times_learned(np.full(4000, 0.3), np.zeros((4000, 1)), seed=5, n_before=7))
    assert not np.array_equal(times, times_learned(np.full(4000, 0.3), np.zeros((4000, 1)), seed=5, n_before=8))


@pytest.mark.parametrize(
    ("weight", "words"), [(-1, "[Nn]egative"), (1e4, "up to 1000"), (0, "at least one non-zero"), (1e-9, "nothing")]
)  # fmt: skip
def test_weights_that_cannot_be_learned_are_refused(weight, words):
    with pytest.raises(ValueError, match=words):
        CNDPMClassifier(random_state=0).partial_fit(X, Y, sample_weight=[weight] * 60)


def test_a_table_whose_weights_differ_too_much_is_refused():
    with pytest.raises(ValueError, match="2001 times the mean"):
        times_learned([1e9, *[1] * 2000], np.zeros((2001, 1)), seed=0, n_before=0, is_table=True)


@pytest.mark.parametrize("kind", [CNDPMClassifier, CNDPMRegressor])
@pytest.mark.parametrize("weight", [2, 5, 0.3, 1e-9, 1e300])
def test_a_weight_that_all_rows_of_a_table_have_changes_nothing(kind, weight):
    y = Y if kind is CNDPMClassifier else X @ [1.0, 2.0, 0.0]
    plain, weighted = (kind(memory_size=20, random_state=0) for _ in range(2))
    plain.fit(X, y)
    weighted.fit(X, y, sample_weight=np.full(60, weight))
    assert weighted.n_experts_ == plain.n_experts_
    assert np.array_equal(weighted.predict(X), plain.predict(X))
    assert np.array_equal(weighted.novelty(X), plain.novelty(X))


@pytest.mark.parametrize(
    ("weights", "times"),
    [
        ([0, 6, 4, 10], [0, 3, 2, 5]),  # what all are multiples of is 2, and none of them is it
        ([0, 0.1, 0.3, 0.2], [0, 1, 3, 2]),
        ([0, 7, 7, 7], [0, 1, 1, 1]),
        (np.float32([0, 0.1, 0.3, 0.7]), [0, 1, 3, 7]),
        ([0, 5e-324, 5e-324, 1.5e-323], [0, 1, 1, 3]),
        ([0, 1e308, 1e308, 5e307], [0, 2, 2, 1]),
    ],
)  # fmt: skip
def test_weights_of_a_table_are_multiples_of_what_they_have_in_common(weights, times):
    assert times_learned(weights, np.zeros((4, 1)), seed=0, n_before=0, is_table=True).tolist() == times


@given(st.integers(0, 2**32), st.floats(1e-6, 1e6))
def test_weights_of_a_table_that_have_nothing_in_common_keep_its_size_on_average(seed, factor):
    weights = np.random.default_rng(seed).uniform(0.2, 1, size=400) * np.repeat([0.0, factor], 200)
    times = times_learned(weights, np.zeros((400, 1)), seed=seed, n_before=0, is_table=True)
    assert times[:200].sum() == 0  # rows without weight are no rows
    assert abs(times.sum() - 200) < 60  # four deviations of the draws are below 30
    assert np.array_equal(times, times_learned(7 * weights, np.zeros((400, 1)), seed=seed, n_before=0, is_table=True))


@pytest.mark.parametrize("n", [30, 31])
def test_the_order_of_a_table_counts_from_31_rows_on(n):
    y = np.where(X[:, 0] > 0, "up", "down")
    one, other = (CNDPMClassifier(random_state=0).fit(X[rows], y[rows]) for rows in (slice(n), slice(n - 1, None, -1)))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X)) == (n == 30)
    values = [CNDPMRegressor(random_state=0).fit(X[rows], X[rows, 0]) for rows in (slice(n), slice(n - 1, None, -1))]
    assert np.array_equal(values[0].predict(X), values[1].predict(X)) == (n == 30)


def test_the_order_of_a_stream_counts_from_its_first_rows_on():
    orders = (slice(20), slice(19, None, -1))
    one, other = (CNDPMClassifier(random_state=0).partial_fit(X[rows], Y[rows]) for rows in orders)
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_few_rows_are_shuffled_and_not_sorted_by_what_they_hold():
    order = few_in_order(np.arange(30.0), [0] * 30, seed=0)
    assert sorted(order) == list(range(30)) and abs(np.corrcoef(order, np.arange(30))[0, 1]) < 0.6
    assert not np.array_equal(order, few_in_order(np.arange(30.0), [0] * 30, seed=1))


def test_fractions_of_two_calls_are_drawn_anew():
    model = CNDPMClassifier(random_state=0)
    for _ in range(2):
        model.partial_fit(X[:30], list(range(30)), sample_weight=np.full(30, 0.5))
    assert {0, 1, 2} == {model._codec.count(label) for label in range(30)}


def test_equal_rows_of_several_labels_have_no_order_either():
    x, y = np.zeros((8, 2)), np.array(["a", "b", "b", "c"] * 2)
    x[4:] = 1
    one, other = (CNDPMClassifier(random_state=0).fit(x[rows], y[rows]) for rows in (slice(8), slice(7, None, -1)))
    assert np.array_equal(one.predict_proba(x), other.predict_proba(x))


def test_the_weight_of_a_class_multiplies_its_prior_and_may_change():
    model = CNDPMClassifier(memory_size=20, random_state=0).fit(X, Y)
    before = model.predict_log_proba(X)
    model.set_params(class_weight={"up": 9.0})
    expected = log_softmax(before + np.log([1.0, 9.0]), axis=1)
    assert np.allclose(model.predict_log_proba(X), expected)
    assert np.allclose(model.explain(X).proba, np.exp(expected.max(axis=1)))
    model.partial_fit(X[:5], Y[:5])
    model.set_params(class_weight=None)
    assert not np.array_equal(model.predict_log_proba(X), before)  # it went on learning


@pytest.mark.parametrize(
    "given", ["equal", {"up": 0}, {"up": -1}, {"up": "much"}, {"up": 10**400}, {"up": np.nan}, [1, 2]]
)
def test_weights_of_classes_that_cannot_be_are_refused(given):
    with pytest.raises((ValueError, TypeError), match="weight"):
        CNDPMClassifier(class_weight=given).fit(X, Y)


def balance(y):
    return np.log(compute_class_weight("balanced", classes=np.unique(y), y=y))


def test_balanced_weights_are_scikit_learns_with_the_counts_so_far():
    model = CNDPMClassifier(memory_size=20, random_state=0).partial_fit(X[:40], Y[:40])
    for y in (Y[:40], np.concatenate([Y[:40], ["up"] * 9])):
        plain = model.set_params(class_weight=None).predict_log_proba(X)
        weighted = model.set_params(class_weight="balanced").predict_log_proba(X)
        assert np.allclose(weighted, log_softmax(plain + balance(y), axis=1))
        model.partial_fit(X[:9], ["up"] * 9)


def test_balanced_answers_find_a_rare_class_as_often_as_the_other():
    rng = np.random.default_rng(3)
    y = np.where(rng.random(600) < 0.05, "rare", "often")
    x = rng.normal(size=(600, 2)) + 1.5 * (y == "rare")[:, None]
    model = CNDPMClassifier(memory_size=100, settings={"features": "identity"}, random_state=0).fit(x, y)
    found = {}
    for weights in (None, "balanced"):
        is_right = model.set_params(class_weight=weights).predict(x) == y
        found[weights] = is_right[y == "rare"].mean(), is_right[y == "often"].mean()
    assert found["balanced"][0] > found[None][0] + 0.3
    assert found["balanced"] == pytest.approx((0.86, 0.86), abs=0.1)  # both 1.06 deviations from the middle


def test_counts_survive_a_file_a_pickle_and_a_merge_and_leave_out_what_was_refused(tmp_path):
    model = CNDPMClassifier(class_weight="balanced", memory_size=20, random_state=0)
    model.partial_fit(X[:40], Y[:40], sample_weight=WHOLE[:40])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((2, 3), np.nan), ["up", "up"])
    counts = {label: int(WHOLE[:40][Y[:40] == label].sum()) for label in ("down", "up")}
    model.save(tmp_path / "model.cndpm")
    for other in (model, CNDPMClassifier.load(tmp_path / "model.cndpm"), pickle.loads(pickle.dumps(model))):
        assert {label: other._codec.count(label) for label in counts} == counts
    second = model.with_same_representation().partial_fit(X[40:], Y[40:])
    merged = merge([model, second])
    assert {label: merged._codec.count(label) - n for label, n in counts.items()} == {
        label: int((Y[40:] == label).sum()) for label in counts
    }


@pytest.mark.parametrize("down", [0, -3, 2.5, True, None, ("a", 1), "down", "$tuple"])
def test_weights_of_labels_of_any_kind_survive_a_file(tmp_path, down):
    model = CNDPMClassifier(class_weight={down: 5.0, "up": 1}, memory_size=20, random_state=0)
    model.partial_fit(X[:40], [down if label == "down" else label for label in Y[:40]])
    model.save(tmp_path / "model.cndpm")
    loaded = CNDPMClassifier.load(tmp_path / "model.cndpm")
    assert loaded.class_weight == model.class_weight
    assert loaded.predict_proba(X[40:]).tolist() == model.predict_proba(X[40:]).tolist()
    model.set_params(class_weight=None)
    assert loaded.predict_proba(X[40:]).tolist() != model.predict_proba(X[40:]).tolist()


def test_a_class_that_has_not_come_yet_has_no_weight():
    assert np.allclose(np.exp(log_class_weights("balanced", ["a", "b", "c"], [30, 10, 0])), [2 / 3, 2, 1])
    model = CNDPMClassifier(class_weight="balanced", random_state=0)
    proba = model.partial_fit(X, Y, classes=["down", "later", "up"]).predict_proba(X)
    assert np.isfinite(proba).all() and np.allclose(proba.sum(axis=1), 1)


def test_weights_that_cannot_be_shown_are_refused_all_the_same():
    class Silent:
        def __repr__(self):
            raise RuntimeError("nothing to show")

    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    for weight in (deep, Silent(), {deep: -1}, {0: Silent()}, "x" * 10**6):
        with pytest.raises((TypeError, ValueError), match="weight") as refused:
            CNDPMClassifier(class_weight=weight).fit([[0.0], [1.0]], [0, 1])
        assert len(str(refused.value)) < 1000
