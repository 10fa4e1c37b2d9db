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
from cndpm.learner import Footprint, Learner
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


def test_an_estimator_is_told_all_classes_once_and_asked_for_the_rows_that_come_next():
    class Told:
        classes_ = np.array([0, 1])

        def __init__(self):
            self.classes, self.asked = [], []

        def partial_fit(self, X, y, classes=None):
            self.classes.append(classes if classes is None else classes.tolist())
            return self

        def predict(self, X, when="now"):
            raise AssertionError

        def predict_proba(self, X, when="now"):
            self.asked.append(when)
            return np.full((len(X), 2), 0.5)

    stream, told = short(30), Told()
    model = asked_model(told, stream)
    for batch in stream:
        model.ask(batch)
        model.learn()
    assert told.classes == [[0, 1], None, None]
    assert told.asked == ["next"] * 3


def test_deviations_of_a_regressor_become_variances():
    class Sure:
        def partial_fit(self, X, y):
            return self

        def predict(self, X, return_std=False):
            return np.zeros(len(X)), np.full(len(X), 3.0)

    stream = stream_of_rows(np.zeros((10, 2)), np.arange(10.0))
    assert asked_model(Sure(), stream).ask(next(iter(stream))).variance.flatten().tolist() == [9.0] * 10


def test_a_learner_keeps_its_numbers_and_its_samples_and_hears_of_tasks():
    class Counting(LEARNERS["finetune"]):
        def __init__(self, settings, **facts):
            super().__init__(settings, **facts)
            self.task_listener, self.heard = self, []

        def begin_task(self, task):
            self.heard.append(("begin", task))

        def end_task(self):
            self.heard.append("end")

        def footprint(self):
            return Footprint(0, 10, memory_samples=1, memory_bytes=7)

    stream = load_scenario("split-digits", fraction=0.05).build(seed=0)
    learner = Counting(Counting.Settings(hidden=4), input_shape=stream.input_shape, n_classes=stream.n_classes)
    model = asked_model(learner, stream)
    for batch in stream:
        model.ask(batch)
        model.learn()
    assert learner.heard == [event for task in range(5) for event in (("begin", task), "end")]
    assert model.memory()["memory_bytes"] == 4 * 10 + 7
