"""scikit-learn's own checks of the estimator contract, and of nothing less."""

import numpy as np
import pytest
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


ROUNDING = {"check_methods_subset_invariance": "networks in float32 round differently for batches of different sizes"}


@pytest.mark.slow
@parametrize_with_checks(
    [CNDPMClassifier(settings=NEURAL), CNDPMRegressor(settings={**NEURAL, "temperature": 1.0})],
    expected_failed_checks=lambda estimator: ROUNDING if isinstance(estimator, CNDPMRegressor) else {},
    xfail_strict=False,  # scikit-learn allows 1e-7, and what rounding comes to depends on what was learned
)
def test_neural_experts_pass_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_networks_answer_alike_whatever_else_is_asked_but_for_rounding(seed):
    x = 3 * np.random.default_rng(seed).uniform(size=(20, 3))
    regressor = CNDPMRegressor(settings={**NEURAL, "temperature": 1.0}, random_state=seed).fit(x, np.floor(x[:, 0]))
    one_by_one = np.concatenate([regressor.predict(row[None]) for row in x])
    np.testing.assert_allclose(regressor.predict(x), one_by_one, rtol=1e-6, atol=1e-6)
