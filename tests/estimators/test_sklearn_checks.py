"""scikit-learn's own checks of the estimator contract, and of nothing less."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor

NEURAL = {
    "experts": "neural",
    "likelihood": "gaussian",
    "standardise": True,
    "log_alpha": -400.0,
    "sleep_until": "converged",
    "density_lr": 5e-3,
    "predictor_lr": 5e-3,
    "density_sleep_steps": 400,
    "predictor_sleep_steps": 400,
    "n_latent_samples": 2,
}


# check_array_api_input skips itself: it needs an environment variable that must be set before scipy is imported.
@parametrize_with_checks([CNDPMClassifier(), CNDPMRegressor(), CNDPMDensity()])
def test_the_estimators_pass_scikit_learns_checks(estimator, check):
    check(estimator)


class RegressorInSingles(CNDPMRegressor):
    """Says in what its networks compute, by which scikit-learn's checks choose what they tolerate."""

    def predict(self, X, **how):
        return super().predict(X, **how).astype(np.float32)


class ClassifierInSingles(CNDPMClassifier):
    """The same for labels."""

    def predict_log_proba(self, X, **how):
        return super().predict_log_proba(X, **how).astype(np.float32)


IN_SINGLES = {CNDPMClassifier: ClassifierInSingles, CNDPMRegressor: RegressorInSingles}
OF_NETWORKS = [CNDPMClassifier(settings=NEURAL), CNDPMRegressor(settings={**NEURAL, "temperature": 1.0})]


@pytest.mark.slow
@parametrize_with_checks(OF_NETWORKS)
def test_neural_experts_pass_scikit_learns_checks(estimator, check):
    if check.func.__name__ == "check_methods_subset_invariance":
        # Of float64 it allows 1e-7 and 1e-7 of the answer, less than two of float32's last digits at 1, by which matrix
        # products of 20 rows and of one differ; the next test says how far answers may differ.
        estimator = IN_SINGLES[type(estimator)](settings=estimator.settings)
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("estimator", OF_NETWORKS, ids=["classifier", "regressor"])
def test_networks_answer_alike_whatever_else_is_asked_but_for_rounding(estimator, seed):
    x = 3 * np.random.default_rng(seed).uniform(size=(20, 3))
    model = clone(estimator).set_params(random_state=seed).fit(x, np.floor(x[:, 0]))
    ask = model.predict_log_proba if isinstance(model, CNDPMClassifier) else model.predict
    one_by_one = np.concatenate([ask(row[None]) for row in x])
    np.testing.assert_allclose(ask(x), one_by_one, rtol=1e-6, atol=1e-6)
