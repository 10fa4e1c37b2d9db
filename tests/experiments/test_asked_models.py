"""Every learner and estimator can be asked, and asking changes nothing of what it learns."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.experiments.learners import LEARNERS
from cndpm.experiments.prequential_evaluation import asked_model
from cndpm.experiments.presets import preset_settings
from cndpm.learner import Learner
from cndpm.streams import load_scenario, stream_from, stream_of_rows

SMALL = {"hidden": 8, "epochs": 1, "memory_size": 20, "n_features": 20}


def learner_of(name, stream):
    fields = LEARNERS[name].Settings.model_fields
    chosen = {key: value for key, value in SMALL.items() if key in fields} | preset_settings(
        "default", name, "drift-flip"
    )
    settings = LEARNERS[name].Settings.model_validate(chosen)
    return LEARNERS[name](settings, input_shape=stream.input_shape, n_classes=stream.n_classes, seed=0)


def short(n=60, **options):
    rows = load_scenario("drift-flip").draw(0)
    return stream_of_rows(rows.x[:n], rows.y[:n], **options)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_answers_rows_before_it_learns_them(name):
    stream = short(changes=(30,))
    model, plain = asked_model(learner_of(name, stream), stream), learner_of(name, stream)
    twin = asked_model(plain, stream)
    for batch in stream:
        answers = model.ask(batch)
        assert answers.predicted.shape == (10,) and bool((answers.log_truth <= 0).all())
        gate = model.gate()
        assert gate is None or len(gate) in (0, 10)
        model.learn()
        twin._x, twin._y = plain.prepare(batch.x), batch.y
        twin.learn()
    assert model.memory()["memory_bytes"] > 0
    assert torch.equal(model._learner.predict_log_proba(stream.x), plain.predict_log_proba(stream.x))


@pytest.mark.parametrize("make", [CNDPMClassifier, GaussianNB, SGDClassifier, lambda: SGDClassifier(loss="log_loss")])
def test_classifiers_answer_from_the_second_batch_on(make):
    stream = short()
    model = asked_model(make(), stream)
    first, second = list(stream)[:2]
    assert model.ask(first) is None
    model.learn()
    answers = model.ask(second)
    assert answers.truth.tolist() == second.y.tolist() and model.memory()["memory_bytes"] > 0
    assert (answers.log_truth is not None) == hasattr(model._model, "predict_proba")


@pytest.mark.parametrize("make", [CNDPMRegressor, SGDRegressor])
def test_regressors_answer_with_values(make):
    rows = load_scenario("drift-sign").draw(0)
    stream = stream_of_rows(rows.x[:40], rows.y[:40])
    model = asked_model(make(), stream)
    first, second = list(stream)[:2]
    assert model.ask(first) is None
    model.learn()
    answers = model.ask(second)
    assert answers.mean.shape == answers.truth.shape == (10, 1)
    assert (answers.variance is not None) == isinstance(model._model, CNDPMRegressor)


def test_a_density_answers_with_log_densities():
    stream = stream_from([np.random.default_rng(i).normal(size=(10, 2)) for i in range(3)])
    model = asked_model(CNDPMDensity(random_state=0), stream)
    first, second, _ = list(stream)
    assert model.ask(first) is None
    model.learn()
    expected = model._model.score_samples(second.x.numpy())
    assert np.array_equal(model.ask(second).log_density.numpy(), expected) and model.gate() is not None


def test_a_class_that_no_batch_has_shown_yet_is_held_impossible():
    stream = stream_of_rows(np.arange(40.0).reshape(20, 2), np.repeat([0, 2], 10))
    model = asked_model(CNDPMClassifier(random_state=0), stream_from(list(stream)))
    first, second = stream
    model.ask(first)
    model.learn()
    assert model.ask(second).log_truth.tolist() == [-torch.inf] * 10


def test_labels_that_need_not_be_consecutive_find_their_columns():
    class Fixed:
        classes_ = np.array([1, 4])

        def partial_fit(self, X, y):
            return self

        def predict_proba(self, X):
            return np.tile([0.25, 0.75], (len(X), 1))

    stream = stream_of_rows(np.zeros((10, 2)), [1, 4] * 5)
    answers = asked_model(Fixed(), stream).ask(next(iter(stream)))
    assert answers.predicted.tolist() == [4] * 10
    assert answers.log_truth.exp().tolist() == pytest.approx([0.25, 0.75] * 5)


def test_what_cannot_learn_is_refused():
    with pytest.raises(TypeError, match="partial_fit is needed; got object"):
        asked_model(object(), short())


def test_a_learner_that_predicts_classes_says_so_when_asked_for_values():
    with pytest.raises(NotImplementedError, match="predicts classes, not values"):
        Learner.predict_moments(learner_of("slda", short()), torch.zeros(1, 5))
