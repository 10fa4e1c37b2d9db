import numpy as np
import pytest
from scipy.special import log_softmax

from cndpm import CNDPMClassifier, CNDPMRegressor
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


@pytest.mark.parametrize("given", ["balanced", {"up": 0}, {"up": -1}, {"up": "much"}, [1, 2]])
def test_weights_of_classes_that_cannot_be_are_refused(given):
    with pytest.raises((ValueError, TypeError), match="weight"):
        CNDPMClassifier(class_weight=given).fit(X, Y)
