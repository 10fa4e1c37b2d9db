import pickle

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.utils.class_weight import compute_class_weight

from cndpm import CNDPMClassifier, CNDPMRegressor, merge
from cndpm.estimators.weights import times_learned

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] + 0.8 * RNG.normal(size=60) > 0, "up", "down")
WHOLE = RNG.integers(0, 4, size=60)


def test_whole_weights_are_repetitions_to_the_bit():
    often = np.repeat(np.arange(60), WHOLE)
    weighted = CNDPMClassifier(memory_size=20, random_state=0).fit(X, Y, sample_weight=WHOLE)
    repeated = CNDPMClassifier(memory_size=20, random_state=0).fit(X[often], Y[often])
    assert np.array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    targets = X @ [1.0, 2.0, 0.0]
    weighted = CNDPMRegressor(memory_size=20, random_state=0).fit(X, targets, WHOLE)
    repeated = CNDPMRegressor(memory_size=20, random_state=0).fit(X[often], targets[often])
    assert np.array_equal(weighted.predict(X), repeated.predict(X))


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
        CNDPMClassifier(random_state=0).fit(X, Y, sample_weight=[weight] * 60)


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


def test_a_class_that_has_not_come_yet_has_no_weight():
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
