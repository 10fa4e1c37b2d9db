"""What estimators return, against the learner's own answers."""

import math

import numpy as np
import pytest
import torch

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(240, 3)).astype(np.float32)
    return x, x @ np.array([1.0, -2.0, 0.5])


@pytest.fixture(scope="module")
def regressor(table) -> CNDPMRegressor:
    x, y = table
    return CNDPMRegressor(memory_size=60, random_state=0).partial_fit(x, y)


def test_return_std_gives_the_root_of_the_variance(regressor, table):
    x = table[0][:6]
    for when in ("now", "any"):
        moments = regressor.learner_.predict_moments(torch.from_numpy(x), when=when).numpy()
        mean, std = regressor.predict(x, return_std=True, when=when)
        assert mean.shape == std.shape == (6,)
        np.testing.assert_allclose(mean, moments[:, 0, 0])
        np.testing.assert_allclose(std, np.sqrt(moments[:, 1, 0]))


@pytest.fixture(scope="module")
def classifier(table) -> CNDPMClassifier:
    """Labels in an order that is not the sorted one, and a few samples after the last renewal."""
    x, y = table
    labels = np.where(y > 1, "b", np.where(y < -1, "a", "c"))
    order = np.argsort(labels == "a", kind="stable")  # c and b come before a
    return CNDPMClassifier(memory_size=60, random_state=0).partial_fit(x[order], labels[order])


def test_columns_are_in_the_order_of_the_sorted_classes(classifier, table):
    x = table[0][:20]
    assert classifier.classes_.tolist() == ["a", "b", "c"]
    inside = classifier._codec.labels
    assert inside != ["a", "b", "c"]
    for when in ("now", "any"):
        for exact in (False, True):
            given = classifier.learner_.predict_log_proba(torch.from_numpy(x), exact=exact, when=when).numpy()
            expected = given[:, [inside.index(label) for label in "abc"]]
            np.testing.assert_allclose(classifier.predict_log_proba(x, exact=exact, when=when), expected)
            np.testing.assert_allclose(classifier.predict_proba(x, exact=exact, when=when), np.exp(expected))
            found = [inside[k] for k in given.argmax(axis=1)]
            assert classifier.predict(x, exact=exact, when=when).tolist() == found
    assert not np.array_equal(*(classifier.predict_log_proba(x, when=when) for when in ("now", "any")))


def test_an_explanation_tells_the_probability_of_the_label_it_gives(classifier, table):
    x = table[0][:20]
    explained = classifier.explain(x)
    np.testing.assert_allclose(explained.proba, classifier.predict_proba(x).max(axis=1))
    assert explained.prediction.tolist() == classifier.predict(x).tolist()


def test_drawn_labels_are_those_of_the_rows_drawn():
    x = np.concatenate([np.zeros((30, 2)), np.full((30, 2), 20.0)]).astype(np.float32)
    x += np.random.default_rng(1).normal(size=x.shape)
    labels = ["z"] * 30 + ["a"] * 30
    settings = {"features": "identity"}
    model = CNDPMClassifier(memory_size=20, settings=settings, random_state=0).fit(x, labels)
    drawn, y = model.sample(40, random_state=1)
    assert [label == "z" for label in y] == (drawn.mean(axis=1) < 10).tolist()


def test_other_classes_than_the_first_call_gave_are_refused(table):
    x = table[0][:20]
    model = CNDPMClassifier(random_state=0).partial_fit(x, [0, 1] * 10, classes=[0, 1])
    with pytest.raises(ValueError, match="differs from the first call's"):
        model.partial_fit(x, [0, 1] * 10, classes=[0, 1, 2])


def test_fit_leaves_nothing_waiting(table):
    x, y = table
    assert len(CNDPMRegressor(memory_size=40, random_state=0).fit(x[:30], y[:30]).learner_.memory) == 0
    assert len(CNDPMClassifier(memory_size=40, random_state=0).fit(x[:30], y[:30] > 0).learner_.memory) == 0
    assert len(CNDPMDensity(memory_size=40, random_state=0).fit(x[:30]).learner_.memory) == 0


def test_densities_are_scored_by_their_mean_and_in_bits_by_dimension(table):
    x = table[0]
    model = CNDPMDensity(memory_size=60, false_alarm_rate=0.05, random_state=0).fit(x)
    asked = np.concatenate([x[:10], x[:2] + 50])
    log_density = model.score_samples(asked)
    assert model.score(asked) == pytest.approx(log_density.mean())
    assert model.bits_per_dim(asked) == pytest.approx(-log_density.mean() / (3 * math.log(2)))
    level = model.learner_.watch.level(0.05)
    assert model.offset_ == level > model.learner_.watch.level(0.01)
    np.testing.assert_allclose(model.decision_function(asked), log_density - level)
    assert model.predict(asked).tolist() == np.where(log_density >= level, 1, -1).tolist()
    assert model.predict(asked)[-2:].tolist() == [-1, -1]


def test_a_regressor_whose_targets_have_all_been_the_same_answers_with_them():
    x = np.random.default_rng(0).normal(size=(120, 4))
    answer = CNDPMRegressor(random_state=0).partial_fit(x, np.zeros(120)).predict(x[:5])
    assert np.abs(answer).max() < 1e-6


def test_the_time_asked_and_exactness_reach_the_learner(regressor, classifier, table, monkeypatch):
    asked = []

    def noted(answer):
        def noting(x, **given):
            asked.append(given)
            return answer(x, **given)

        return noting

    for model, name in ((regressor, "predict_moments"), (classifier, "predict_log_proba")):
        monkeypatch.setattr(model.learner_, name, noted(getattr(model.learner_, name)))
    regressor.predict(table[0][:6], when="any")
    classifier.predict(table[0][:6], exact=True, when="any")
    assert asked == [{"when": "any"}, {"exact": True, "when": "any"}]


class Raising(str):
    def __eq__(self, other):
        raise KeyError("asked")

    __hash__ = str.__hash__


@pytest.mark.parametrize("when", ["later", ["now"], None, np.array(["now", "any"]), Raising("now")])
def test_a_time_that_is_none_is_refused_and_asked_nothing(regressor, classifier, table, when):
    for model in (regressor, classifier):
        with pytest.raises(ValueError, match="when is 'now', 'next' or 'any'; got"):
            model.predict(table[0][:2], when=when)
        assert (
            model.predict(table[0][:2], when=np.str_("any")).tolist()
            == model.predict(table[0][:2], when="any").tolist()
        )
