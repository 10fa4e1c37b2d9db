"""Models of scikit-learn and river as learners."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import SGDClassifier

from cndpm.baselines.others import others_learner
from cndpm.experiments import compare_learners, configure
from cndpm.experiments.learners import learner_class, learner_name, shown_learner
from cndpm.names import ObjectNameError, UnknownNameError
from cndpm.validation import ConfigError
from river import naive_bayes

SGD, BAYES = "sklearn:sklearn.linear_model.SGDClassifier", "river:river.naive_bayes.GaussianNB"
NAMES = [SGD, "sklearn:sklearn.naive_bayes.GaussianNB", BAYES]


def rows(n=60, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy((x[:, 0] > 0).astype(np.int64))


def made(name, **settings):
    cls = learner_class(name)
    return cls(cls.Settings(**settings), input_shape=(3,), n_classes=2, seed=4)


def test_a_model_of_scikit_learn_learns_as_by_itself():
    (x, y), learner, model = rows(), made(SGD, alpha=0.01), SGDClassifier(alpha=0.01, random_state=4)
    for first in range(0, 60, 10):
        learner.learn(x[first : first + 10], y[first : first + 10])
        model.partial_fit(x[first : first + 10].double().numpy(), y[first : first + 10].numpy(), classes=[0, 1])
    np.testing.assert_array_equal(learner.predict_log_proba(x).argmax(dim=1), model.predict(x.double().numpy()))


def test_a_model_of_river_learns_as_by_itself():
    (x, y), learner, model = rows(), made(BAYES), naive_bayes.GaussianNB()
    learner.learn(x, y)
    for row, label in zip(x.double().tolist(), y.tolist(), strict=True):
        model.learn_one(dict(enumerate(row)), label)
    expected = [model.predict_proba_one(dict(enumerate(row)))[1] for row in x.double().tolist()]
    np.testing.assert_allclose(learner.predict_log_proba(x).exp()[:, 1], expected, atol=1e-5)


def test_what_makes_no_model_is_said_so():
    with pytest.raises(ConfigError, match=r"json\.dumps made no model: .* missing 1 required positional argument"):
        made("sklearn:json.dumps")


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_learner_goes_on_to_the_same_bits_and_its_state_is_data(name):
    (x, y), learner, resumed = rows(), made(name), made(name)
    assert learner.predict_log_proba(x[:1]).exp().tolist() == [[0.5, 0.5]]
    learner.learn_block(x[:40], y[:40], batch_size=10)
    state = learner.state_dict()
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    resumed.load_state_dict(state)
    for each in (learner, resumed):
        each.learn(x[40:], y[40:])
    assert torch.equal(learner.predict_log_proba(x), resumed.predict_log_proba(x))
    assert learner.footprint().n_numbers_kept > 10


def test_a_name_is_kept_and_what_cannot_be_is_refused_with_the_remedy():
    assert learner_name(learner_class(SGD)) == SGD and others_learner(SGD) is others_learner(SGD)
    with pytest.raises(ObjectNameError, match=r"write river:package\.module\.Class"):
        learner_class("river:ARFClassifier")
    with pytest.raises(ObjectNameError, match=r"Names are as in an import: river:river\.forest\.ARF"):
        learner_class("river:forest.ARFClassifier")
    assert learner_name(learner_class("sklearn:sklearn.linear_model:SGDClassifier")) == SGD
    assert (
        shown_learner("sklearn:sklearn.linear_model:SGDClassifier") == shown_learner(SGD) == "SGDClassifier (sklearn)"
    )
    with pytest.raises(UnknownNameError, match=r"Did you mean .*SGDClassifier"):
        learner_class("sklearn:sklearn.linear_model.SGDClassifer")
    with pytest.raises(ConfigError, match="has no partial_fit"):
        made("sklearn:sklearn.linear_model.LogisticRegression")
    with pytest.raises(ConfigError, match=r"no argument 'alhpa'\. Did you mean alpha"):
        configure("drift-flip", learner=SGD, overrides=["learner.alhpa=1"])
    cls = learner_class(SGD)
    with pytest.raises(ConfigError, match="where labels are classes"):
        cls(cls.Settings(), input_shape=(3,))


def test_learners_of_others_are_compared_in_one_run(tmp_path):
    names = ["sklearn:sklearn.naive_bayes.GaussianNB", BAYES]
    short = ["run.max_batches=60", "run.prequential_window=100"]
    compared = compare_learners("drift-flip", names, tmp_path / "out", device="cpu", overrides=short)
    assert [result["learner"] for result in compared["learners"]] == names
    assert all(result["prequential_accuracy"] > 80 for result in compared["learners"])
