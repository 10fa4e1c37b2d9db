import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from torture.call_worker import fingerprint

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state import StateError

NEURAL = {
    "experts": "neural", "likelihood": "pixel-gaussian", "log_alpha": -100.0, "hidden": 16, "hidden_growth": 8,
    "latent_dim": 4, "n_latent_samples": 2, "density_lr": 1e-2, "predictor_lr": 1e-2,
    "density_sleep_steps": 150, "predictor_sleep_steps": 100, "predictor_wake_lr_factor": 0.3,
}  # fmt: skip
BOTH = {"classifier": "both", "companions": {"hidden": 16, "sleep_steps": 20, "batch_size": 16}}


@pytest.fixture(scope="module")
def digits():
    """Five two-class tasks one after the other, and a test set."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    X, y = X[order], y[order]
    train, test = slice(0, 1300), slice(1300, None)
    by_task = np.argsort(y[train] // 2, kind="stable")
    return X[train][by_task], y[train][by_task], X[test], y[test]


def stream(X, y, size=10):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]


def test_a_stream_of_tasks_is_learned_without_being_told_where_they_end(digits):
    X, y, X_test, y_test = digits
    model = CNDPMClassifier(memory_size=100, random_state=0)
    for batch in stream(X, y):
        model.partial_fit(*batch)
    assert 5 <= model.n_experts_ <= 6
    assert model.score(X_test, y_test) > 0.95
    assert model.classes_.tolist() == list(range(10))
    np.testing.assert_allclose(model.predict_proba(X_test).sum(axis=1), 1)


def test_images_may_come_flat_or_in_their_shape(digits):
    X, y, X_test, y_test = digits
    X, y = X[:500], y[:500]
    models = [CNDPMClassifier(memory_size=100, input_shape=(1, 8, 8), random_state=0) for _ in range(3)]
    models[0].fit(X, y)
    models[1].fit(X.reshape(-1, 1, 8, 8), y)
    models[2].fit(torch.tensor(X).reshape(-1, 1, 8, 8), torch.tensor(y))
    expected = models[0].predict_proba(X_test)
    assert np.array_equal(expected, models[1].predict_proba(X_test.reshape(-1, 1, 8, 8)))
    assert np.array_equal(expected, models[2].predict_proba(torch.tensor(X_test)))
    known = np.isin(y_test, models[0].classes_)
    assert models[0].score(X_test[known], y_test[known]) > 0.97


def test_a_class_is_known_from_its_first_batch_on(digits):
    X, y, _, _ = digits
    model = CNDPMClassifier(memory_size=200, random_state=0)
    model.partial_fit(X[:20], y[:20])
    assert model.n_experts_ == 0
    assert (model.predict(X[:20]) == y[:20]).mean() > 0.9
    names = np.array(["cat", "dog"])[(y[-40:] % 2)]
    other = CNDPMClassifier(memory_size=20, random_state=0).partial_fit(X[:40], y[:40].astype(str))
    other.partial_fit(X[-10:], names[-10:])
    assert {"cat", "dog"} <= set(other.classes_)
    assert set(other.predict(X[-10:])) <= {"cat", "dog"}


def test_labels_of_any_hashable_type(digits):
    X, y = digits[0][:600], digits[1][:600]
    labels = [("even", int(v)) if v % 2 == 0 else str(v) for v in y]
    model = CNDPMClassifier(memory_size=100, random_state=0)
    for start in range(0, len(X), 50):
        model.partial_fit(X[start : start + 50], labels[start : start + 50])
    predicted = model.predict(X[:50])
    assert np.mean([p == t for p, t in zip(predicted, labels[:50], strict=True)]) >= 0.9


@pytest.mark.parametrize("settings", [None, NEURAL, BOTH], ids=["gaussian", "neural", "both"])
def test_saving_in_the_middle_of_a_stream_changes_no_bit(digits, tmp_path, settings):
    X, y, X_test, _ = digits
    X, y = X[:600], [("digit", int(v)) for v in y[:600]]
    straight = CNDPMClassifier(memory_size=80, settings=settings, random_state=3)
    stopped = clone(straight)
    for start in range(0, 600, 15):
        straight.partial_fit(X[start : start + 15], y[start : start + 15])
        stopped.partial_fit(X[start : start + 15], y[start : start + 15])
        if start in (45, 300, 525):  # before the first expert, between and after others
            stopped.save(tmp_path / "model.cndpm")
            stopped = CNDPMClassifier.load(tmp_path / "model.cndpm")
            assert np.array_equal(straight.predict_proba(X_test[:20]), stopped.predict_proba(X_test[:20]))
    assert stopped.get_params() == straight.get_params()
    assert stopped.classes_.tolist() == straight.classes_.tolist()
    assert np.array_equal(straight.predict_proba(X_test), stopped.predict_proba(X_test))
    assert np.array_equal(straight.counts_, stopped.counts_)


@pytest.mark.parametrize("estimator", [CNDPMClassifier, CNDPMRegressor, CNDPMDensity])
def test_pickles_and_clones_answer_alike(digits, estimator):
    X, y, X_test, _ = digits
    model = estimator(memory_size=100, random_state=0).fit(X[:150], y[:150])
    copy = pickle.loads(pickle.dumps(model))
    name = "score_samples" if estimator is CNDPMDensity else "predict"
    answers = [getattr(each, name)(X_test) for each in (model, copy, clone(model).fit(X[:150], y[:150]))]
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


def test_a_copy_that_is_taught_the_last_rows_again_goes_on_to_the_bit():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 1, 4, 4)) + 4 * random.integers(0, 3, (40, 1, 1, 1)), random.integers(0, 5, 40)
    model = CNDPMClassifier(memory_size=30, batch_size=1, random_state=0, input_shape=(1, 4, 4))
    model.partial_fit(X, y).partial_fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert fingerprint(copy.partial_fit(X, y)) == fingerprint(model.partial_fit(X, y))


def test_a_generator_that_is_given_moves_on_with_every_fit(digits):
    X, y = digits[0][:30], digits[1][:30]
    model = CNDPMClassifier(random_state=np.random.RandomState(0)).fit(X, y)
    assert model._seed != model.fit(X, y)._seed


def test_damaged_foreign_and_other_files_are_refused(digits, tmp_path):
    X, y, _, _ = digits
    path = tmp_path / "m"
    CNDPMClassifier(random_state=0).fit(X[:50], y[:50]).save(path)
    with pytest.raises(StateError, match="holds the state of a CNDPMClassifier; a CNDPMDensity was asked for"):
        CNDPMDensity.load(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(StateError, match="damaged"):
        CNDPMClassifier.load(path)


def test_feature_names_are_kept_saved_and_checked(digits, tmp_path):
    X, y, _, _ = digits
    frame = pd.DataFrame(X[:100], columns=[f"pixel{i}" for i in range(64)])
    fitted = CNDPMClassifier(random_state=0).fit(frame, pd.Series(y[:100]))
    fitted.save(tmp_path / "model")
    model = CNDPMClassifier.load(tmp_path / "model")
    assert model.feature_names_in_[3] == "pixel3" and model._seed == fitted._seed > 0
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


def test_classes_may_be_given_up_front(digits):
    X, y, X_test, _ = digits
    model = CNDPMClassifier(random_state=0).partial_fit(X[:50], y[:50], classes=range(10))
    assert model.predict_proba(X_test).shape == (len(X_test), 10)
    with pytest.raises(ValueError, match=r"not among the known classes: \[99\]"):
        model.partial_fit(X[:2], [0, 99])
    with pytest.raises(ValueError, match="differs from the first call"):
        model.partial_fit(X[:2], y[:2], classes=[1, 2])


BAD = {
    "nan": ({"X": np.full((3, 64), np.nan), "y": [0, 1, 0]}, ValueError, "NaN"),
    "width": ({"X": np.zeros((3, 5)), "y": [0, 1, 0]}, ValueError, "5 features.*expecting 64"),
    "empty": ({"X": np.zeros((0, 64)), "y": []}, ValueError, "0 sample"),
    "lengths": ({"X": np.zeros((3, 64)), "y": [0, 1]}, ValueError, r"\[3, 2\]"),
    "unhashable": ({"X": np.zeros((2, 64)), "y": [{}, {}]}, TypeError, "hashable"),
    "text": ({"X": np.full((2, 64), "a"), "y": [0, 1]}, ValueError, "could not convert string"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_and_nothing_learned_is_lost(digits, case):
    X, y, X_test, _ = digits
    arguments, error, message = BAD[case]
    model = CNDPMClassifier(memory_size=100, random_state=0).partial_fit(X[:350], y[:350])
    before = model.predict_proba(X_test)
    classes = model.classes_.tolist()
    with pytest.raises(error, match=message):
        model.partial_fit(**arguments)
    assert np.array_equal(before, model.predict_proba(X_test))
    assert model.classes_.tolist() == classes


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"memory_size": 0}, "memory_size.*got 0"),
        ({"log_alpha": float("nan")}, "log_alpha"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"device": "gpu"}, "device must be 'auto' or a torch device such as 'cpu'"),
        ({"settings": {"memroy_size": 5}}, "memroy_size"),
        ({"input_shape": (3, 3)}, r"input_shape=\(3, 3\) has 9 values a sample; X has 64 features"),
        ({"density": object}, "for experts='neural'"),
    ],
)
def test_parameters_out_of_range_are_named_before_anything_is_learned(digits, parameters, message):
    X, y, _, _ = digits
    with pytest.raises(ValueError, match=message):
        CNDPMClassifier(**parameters).fit(X[:20], y[:20])


def test_edge_streams_work():
    rng = np.random.default_rng(0)
    one_class = CNDPMClassifier(memory_size=5, random_state=0)
    for _ in range(30):
        one_class.partial_fit(rng.normal(size=(1, 3)), ["only"])
    assert set(one_class.predict(rng.normal(size=(4, 3)))) == {"only"}
    constant = np.hstack([rng.normal(size=(60, 2)), np.ones((60, 1))])
    model = CNDPMClassifier(memory_size=20, random_state=0).fit(constant, constant[:, 0] > 0)
    assert model.score(constant, constant[:, 0] > 0) > 0.8


def test_what_is_not_linear_is_learned_too():
    X, y = make_moons(600, noise=0.1, random_state=0)
    assert CNDPMClassifier(memory_size=300, random_state=0).fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.97


def test_sampled_pairs_look_like_the_data(digits):
    X, y, _, _ = digits
    model = CNDPMClassifier(memory_size=100, random_state=0).fit(X, y)
    X_new, y_new = model.sample(200, random_state=1)
    assert X_new.shape == (200, 64)
    assert set(y_new.tolist()) <= set(range(10))
    assert (model.predict(X_new) == y_new).mean() > 0.8


def test_regression_on_two_regimes_with_uncertainty():
    rng = np.random.default_rng(0)
    model = CNDPMRegressor(memory_size=60, random_state=0)
    for regime in range(2):
        for _ in range(20):
            X = rng.normal(size=(10, 2)) + 8 * regime
            model.partial_fit(X, (1 - 2 * regime) * X.sum(axis=1) + 0.05 * rng.normal(size=10))
    X = rng.normal(size=(50, 2))
    mean, std = model.predict(X, return_std=True)
    assert np.abs(mean - X.sum(axis=1)).mean() < 0.3
    assert model.score(X + 8, -(X + 8).sum(axis=1)) > 0.9
    far = model.predict(np.full((1, 2), 4.0), return_std=True)[1]
    assert far[0] > std.mean()
    both = CNDPMRegressor(memory_size=60, random_state=0).fit(X, np.stack([X[:, 0], X[:, 1]], axis=1))
    assert both.predict(X).shape == (50, 2)


def test_the_density_finds_clusters_and_rates_strangers_low():
    rng = np.random.default_rng(0)
    model = CNDPMDensity(memory_size=60, random_state=0)
    centres = np.array([[0, 0], [9, 0], [0, 9]])
    for centre in centres:
        for _ in range(20):
            model.partial_fit(rng.normal(size=(10, 2)) + centre)
    assert model.n_experts_ == 3
    clusters = [model.explain(rng.normal(size=(50, 2)) + centre).expert for centre in centres]
    assert [np.bincount(c).argmax() for c in clusters] == [0, 1, 2]
    assert model.score(rng.normal(size=(50, 2))) > model.score(rng.normal(size=(50, 2)) + 20) + 5
    X, experts = model.sample(300)
    assert (model.explain(X).expert == experts).mean() > 0.95
    exact = np.log(1 / 3) - np.log(2 * np.pi) - 1
    assert model.score(rng.normal(size=(2000, 2))) == pytest.approx(exact, abs=0.1)
    assert model.bits_per_dim(X) == pytest.approx(-model.score(X) / (2 * np.log(2)))


def test_pruning_merges_duplicates(digits):
    X, y, X_test, y_test = digits
    model = CNDPMClassifier(memory_size=100, log_alpha=1e7, random_state=0).fit(X, y)
    before, n = model.score(X_test, y_test), model.n_experts_
    assert n > 8
    merges = model.prune(X, y, threshold=0.9)
    assert model.n_experts_ == n - len(merges)
    assert merges
    assert model.score(X_test, y_test) > before - 0.02


def test_a_custom_feature_map_serves(digits):
    X, y, X_test, y_test = digits
    backbone = torch.nn.Sequential(torch.nn.Linear(64, 100), torch.nn.ReLU())
    model = CNDPMClassifier(memory_size=100, features=backbone, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > 0.85


def test_the_papers_configuration_is_one_word_away(digits):
    X, y, X_test, _ = digits
    quick = {"density_sleep_steps": 20, "predictor_sleep_steps": 20, "n_latent_samples": 2}
    model = CNDPMClassifier.paper(memory_size=60, settings=quick, random_state=0).fit(X[:200], y[:200])
    settings = model.learner_.settings
    assert settings == CNDPMSettings.paper(memory_size=60, **quick)
    assert (settings.experts.kind, settings.novelty.log_alpha, settings.anytime) == ("neural", -400.0, False)
    assert (settings.experts.density.likelihood, settings.experts.predictor.temperature) == ("unit-gaussian", 0.01)
    assert model.predict(X_test).shape == (len(X_test),)


def test_a_notebook_shows_the_experts(digits):
    X, y, _, _ = digits
    model = CNDPMClassifier(memory_size=100, random_state=0)
    assert "in the memory" not in model._repr_html_()
    html = model.fit(X[:300], y[:300])._repr_html_()
    assert f"{model.n_experts_} expert" in html
    assert "0 of 100 samples in the memory" in html


def test_only_experts_that_model_x_itself_give_its_density(digits):
    X, y, _, _ = digits
    for estimator in (CNDPMClassifier, CNDPMRegressor):
        of_features = estimator(random_state=0).fit(X[:100], y[:100])
        assert not hasattr(of_features, "score_samples")
        with pytest.raises(AttributeError) as refused:
            of_features.score_samples(X)
        assert "model features of x, not x itself" in str(refused.value.__cause__)
    images = CNDPMDensity(random_state=0, input_shape=(1, 8, 8)).fit(X[:100])
    with pytest.raises(ValueError, match="model features of x, not x itself"):
        images.bits_per_dim(X)


def test_a_density_of_rows_integrates_to_one():
    x = np.random.default_rng(0).normal(size=(400, 1)).astype(np.float32) * 3
    model = CNDPMClassifier(random_state=0, settings={"features": "identity"}).fit(x, (x[:, 0] > 0).astype(int))
    grid = np.linspace(-60, 60, 20001, dtype=np.float32)
    assert np.trapezoid(np.exp(model.score_samples(grid[:, None])), grid) == pytest.approx(1, abs=1e-3)


def test_the_same_data_give_the_same_model_whichever_face_it_comes_through(digits):
    X, y, X_test, _ = digits
    told = CNDPMClassifier(memory_size=100, random_state=0)
    for start in range(0, 400, 50):
        told.partial_fit(X[start : start + 50], y[start : start + 50], classes=range(10) if not start else None)
    found = CNDPMClassifier(memory_size=100, random_state=0).fit(X[:400], y[:400])
    told.consolidate()
    assert np.array_equal(told.predict(X_test), found.predict(X_test))
    met = [told.classes_.tolist().index(label) for label in found.classes_]
    np.testing.assert_allclose(told.predict_proba(X_test)[:, met], found.predict_proba(X_test), atol=1e-6)
    learner = CNDPM(CNDPMSettings(memory_size=100), input_shape=(64,), n_classes=10, seed=told.learner_.seed)
    learner.learn_block(torch.tensor(X[:400]).float(), torch.tensor(y[:400]), 10)
    learner.consolidate()
    learner.finish()
    answers = learner.predict_log_proba(torch.tensor(X_test).float()).argmax(1).numpy()
    assert np.array_equal(answers, found.predict(X_test))
