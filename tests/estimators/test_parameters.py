"""Parameters of the estimators: checked before anything changes, settings by their own names, no silent changes."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.model.settings import CNDPMSettings

ESTIMATORS = [CNDPMClassifier, CNDPMRegressor, CNDPMDensity]


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.1, random_state=0)


REFUSED = {
    "memory": ({"memory_size": 0}, ValueError, "memory_size.*got 0"),
    "memory of wrong type": ({"memory_size": "many"}, ValueError, "memory_size.*got 'many'"),
    "concentration": ({"log_alpha": "atuo"}, ValueError, "log_alpha.*got 'atuo'"),
    "batch": ({"batch_size": 0}, ValueError, "batch_size must be at least 1; got 0"),
    "half a batch": ({"batch_size": 2.5}, TypeError, "batch_size must be a whole number; got 2.5"),
    "true batch": ({"batch_size": True}, TypeError, "batch_size must be a whole number; got True"),
    "shape": ({"input_shape": 64}, TypeError, "input_shape must be a tuple of whole numbers"),
    "empty shape": ({"input_shape": (0, 2)}, ValueError, "input_shape must have sides of at least 1"),
    "device": ({"device": "gpu"}, ValueError, "device must be 'auto' or a torch device"),
    "device of wrong type": ({"device": 3.0}, TypeError, "device must be 'auto' or a torch device"),
    "seed": ({"random_state": "lucky"}, ValueError, "lucky"),
    "features": ({"features": "fourier"}, TypeError, "features must be a torch module.*settings="),
    "density": ({"density": 3}, TypeError, "density must be a class that makes one, or None; got 3"),
    "settings": ({"settings": [1]}, TypeError, "settings must be a dictionary"),
    "typo": ({"settings": {"n_fourir": 3}}, ValueError, "Did you mean n_fourier"),
    "typo of a kind": ({"settings": {"experts": "gausian"}}, ValueError, "Did you mean gaussian"),
    "other kind": ({"settings": {"hidden": 3}}, ValueError, "hidden is a setting of experts='neural'"),
    "range": ({"settings": {"n_fourier": 0}}, ValueError, "n_fourier.*got 0"),
    "target": ({"settings": {"target": "none"}}, ValueError, "target is set by the estimator itself"),
}


def answers(model, X):
    return model.score_samples(X) if isinstance(model, CNDPMDensity) else model.predict(X)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("case", REFUSED)
def test_wrong_parameters_are_refused_before_anything_changes(moons, case, estimator):
    parameters, error, message = REFUSED[case]
    for method in ("fit", "partial_fit"):
        model = estimator(**parameters)
        with pytest.raises(error, match=message):
            getattr(model, method)(*moons)
        assert {name for name in vars(model) if name != "_lines"} == set(model.get_params(deep=False))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_parameter_that_cannot_change_any_more_is_named(moons, estimator):
    model = estimator(memory_size=20, random_state=0).partial_fit(*moons)
    before = answers(model, moons[0])
    changes = {"memory_size": 30, "log_alpha": -5.0, "device": "cuda:7", "random_state": 1, "settings__n_fourier": 8}
    for name, value in changes.items():
        changed = name.partition("__")[0]
        old = model.get_params(deep=False)[changed]
        model.set_params(**{name: value})
        with pytest.raises(ValueError, match=rf"{changed} cannot change once|device 'cuda:7' was asked"):
            model.partial_fit(*moons)
        model.set_params(**{changed: old})
    assert np.array_equal(before, answers(model, moons[0]))
    model.partial_fit(*moons)
    model.set_params(memory_size=30).fit(*moons)
    assert model.learner_.settings.memory_size == 30


def test_settings_changed_in_place_are_noticed(moons):
    model = CNDPMClassifier(settings={"n_fourier": 8}, random_state=0).partial_fit(*moons)
    model.settings["n_fourier"] = 16
    with pytest.raises(ValueError, match="settings cannot change once learning has begun"):
        model.partial_fit(*moons)


def test_another_batch_size_counts_from_the_next_call(moons, monkeypatch):
    model = CNDPMClassifier(batch_size=30, random_state=0).partial_fit(*moons)
    sizes, learn_block = [], model.learner_.learn_block
    monkeypatch.setattr(
        model.learner_, "learn_block", lambda x, y, size, **_: (sizes.append(size), learn_block(x, y, size))
    )
    model.set_params(batch_size=50).partial_fit(*moons)
    assert sizes == [50]


def test_a_loaded_model_keeps_to_its_parameters_too(moons, tmp_path):
    CNDPMClassifier(random_state=0).partial_fit(*moons).save(tmp_path / "model")
    model = CNDPMClassifier.load(tmp_path / "model").partial_fit(*moons)
    with pytest.raises(ValueError, match="memory_size cannot change"):
        model.set_params(memory_size=3).partial_fit(*moons)


# Settings by their own names


@pytest.mark.parametrize("name", ["n_fourier", "features__n_fourier", "experts__features__n_fourier"])
def test_a_setting_has_a_name_of_its_own(moons, name):
    model = CNDPMClassifier(random_state=0).set_params(**{f"settings__{name}": 8})
    assert model.get_params()[f"settings__{name}"] == 8
    assert f"settings__{name}" not in model.get_params(deep=False)
    copy = clone(model).set_params(**{f"settings__{name}": 16}).fit(*moons)
    assert copy.learner_.settings.experts.features.n_fourier == 16
    assert model.get_params()[f"settings__{name}"] == 8


def test_the_spelling_of_settings_is_kept_where_it_can_be():
    model = CNDPMClassifier.paper(settings={"hidden": 8})
    assert model.set_params(settings__hidden=9).settings == {"experts": "neural", "anytime": False, "hidden": 9}
    model.set_params(settings__experts__architecture__hidden=10)
    assert CNDPMSettings(**model.settings).experts.architecture.hidden == 10
    model.set_params(settings__experts="gaussian", settings__n_patches=4)
    assert CNDPMSettings(**model.settings).experts.features.n_patches == 4
    given = {"n_patches": 3}
    CNDPMClassifier(settings=given).set_params(settings__n_patches=4)
    assert given == {"n_patches": 3}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"memory_sise": 3}, "there is no parameter of CNDPMClassifier called 'memory_sise'. Did you mean memory_size"),
        ({"n_patches": 3}, "Did you mean settings__n_patches"),
        ({"settings__n_patchs": 3}, "there is no setting 'n_patchs'. Did you mean n_patches"),
        ({"settings__experts__featres__n_patches": 3}, "Did you mean features"),
        ({"settings__hidden": 3}, "hidden is a setting of experts='neural'"),
    ],
)
def test_a_typo_in_a_parameter_is_answered_with_the_nearest(parameters, message):
    model = CNDPMClassifier()
    with pytest.raises(ValueError, match=message):
        model.set_params(**parameters)
    assert model.get_params() == CNDPMClassifier().get_params()


def test_a_grid_of_settings_is_searched(moons):
    grid = {"settings__n_fourier": np.array([2, 32]), "settings__experts__covariance": ["own", "shared"]}
    search = GridSearchCV(CNDPMClassifier(memory_size=30, random_state=0), grid, cv=2).fit(*moons)
    assert len(search.cv_results_["params"]) == 4
    best = search.best_estimator_.learner_.settings.experts
    assert best.features.n_fourier == search.best_params_["settings__n_fourier"]
    assert best.covariance == search.best_params_["settings__experts__covariance"]


@pytest.mark.parametrize("input_shape", [None, (1, 4, 5)])
def test_images_in_a_shape_that_was_not_announced_are_refused_with_the_parameter(input_shape):
    model = CNDPMClassifier(input_shape=input_shape, random_state=0)
    with pytest.raises(ValueError, match=r"input_shape is .*Set input_shape=\(1, 4, 4\)"):
        model.fit(np.zeros((3, 1, 4, 4)), [0, 1, 0])


def test_a_name_that_is_no_parameter_is_answered_with_the_nearest():
    with pytest.raises(TypeError, match=r"CNDPMDensity has no parameter 'memory_sise'\. Did you mean memory_size\?"):
        CNDPMDensity(memory_sise=3)
    with pytest.raises(TypeError, match=r"no parameter 'n_patches'\. Did you mean settings=\{'n_patches': \.\.\.\}\?"):
        CNDPMClassifier(n_patches=3)
    with pytest.raises(TypeError, match=r"no parameter 'seed'\. Did you mean random_state\?"):
        CNDPMClassifier(seed=3)

    class Own(CNDPMClassifier):
        def __init__(self, **anything):
            super().__init__(memory_size=anything.pop("size"))

    assert Own(size=7).memory_size == 7
