"""Plots of estimators, intervals, log-odds and the line of progress."""

import io
import sys

import matplotlib
import numpy as np
import pytest
from sklearn.calibration import CalibrationDisplay

import cndpm.estimators.journal as progress
from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.estimators.displays import ExpertsDisplay, IntervalDisplay, NoveltyDisplay
from cndpm.model.events import Event

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def regressor():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + rng.normal(0, 0.3, 300)
    return CNDPMRegressor(memory_size=50, random_state=0).fit(X[:200], y[:200]), X[200:], y[200:]


def test_an_interval_is_as_wide_as_its_coverage_says(regressor):
    model, X, y = regressor
    mean, deviation = model.predict(X, return_std=True)
    bounds = model.predict_interval(X, coverage=0.95)
    np.testing.assert_allclose(bounds[:, 0], mean - 1.959964 * deviation, rtol=1e-5)
    np.testing.assert_allclose(bounds[:, 1], mean + 1.959964 * deviation, rtol=1e-5)
    inside = (bounds[:, 0] <= y) & (y <= bounds[:, 1])
    assert inside.mean() == pytest.approx(0.95, abs=0.05)
    with pytest.raises(ValueError, match="coverage is a probability between 0 and 1; got 95"):
        model.predict_interval(X, coverage=95)


def test_an_interval_is_for_the_time_that_is_asked_for():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(400, 2)), np.zeros(400)
    for i in range(1, 400):  # errors last
        noise[i] = 0.9 * noise[i - 1] + rng.normal(0, 0.2)
    model = CNDPMRegressor(random_state=0)
    for start in range(0, 400, 10):
        model.partial_fit(X[start : start + 10], X[start : start + 10, 0] + noise[start : start + 10])
    now, soon = (model.predict_interval(X[:1], when=when) for when in ("now", "next"))
    assert soon.mean() == pytest.approx(model.predict(X[:1], when="next")[0])
    assert abs(soon.mean() - now.mean()) > 0.05


def test_many_outputs_have_intervals_of_their_own():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = CNDPMRegressor(memory_size=30, random_state=0).fit(X, X)
    assert model.predict_interval(X).shape == (60, 2, 2)
    with pytest.raises(ValueError, match="intervals are drawn of one output; the regressor has 2"):
        IntervalDisplay.from_estimator(model, X, X)


def test_intervals_are_drawn_with_the_share_that_they_hold(regressor):
    display = IntervalDisplay.from_estimator(*regressor, coverage=0.8)
    assert display.coverage_ == pytest.approx(0.8, abs=0.15)
    assert display.ax_.get_title() == f"{100 * display.coverage_:.0f} % of the targets inside, 80 % expected"
    assert (np.diff(display.interval.mean(axis=1)) >= 0).all()


def test_novelty_is_drawn_on_the_axes_that_are_given(regressor):
    axes = matplotlib.pyplot.subplots()[1]
    display = NoveltyDisplay.from_estimator(regressor[0], regressor[1], ax=axes)
    assert display.ax_ is axes and display.figure_ is axes.figure
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), regressor[0].novelty(regressor[1]))


def test_experts_are_followed_though_their_numbers_close_up():
    events = [Event(10, "founded", 0), Event(20, "founded", 1), Event(30, "founded", 2), Event(40, "merged", 1, 0),
              Event(50, "returned", 1), Event(55, "rule founded", 1), Event(60, "dropped", 0)]  # fmt: skip
    display = ExpertsDisplay(events, n_samples=70)
    assert display.spans() == [(10, 60), (20, 40), (30, 70)]
    assert display.lives[2] == [(30, "founded"), (50, "returned"), (55, "rule founded")]
    explained = [text.get_text() for text in display.plot().ax_.get_legend().get_texts()]
    assert explained == ["founded", "dropped", "merged", "returned", "rule founded"]
    assert len(display.ax_.lines) == 3 + len(events) + len(explained)
    assert not ExpertsDisplay([], n_samples=0).plot().ax_.lines


def test_experts_of_a_model_are_drawn_to_its_last_sample():
    X = np.concatenate([np.random.default_rng(i).normal(20 * i, 1, (100, 2)) for i in range(2)])
    model = CNDPMDensity(memory_size=50, random_state=0).fit(X)
    assert [stop for _, stop in ExpertsDisplay.from_estimator(model).spans()] == [200, 200]


def test_log_odds_agree_with_probabilities_and_calibration_is_drawn_by_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.where(X[:, 0] + rng.normal(0, 0.5, 150) > 0, "yes", "no")
    model = CNDPMClassifier(memory_size=50, random_state=0).fit(X, y)
    odds, proba = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), proba[:, 1], rtol=1e-6)
    assert CalibrationDisplay.from_estimator(model, X, y).ax_.lines
    three = model.partial_fit(X[:3] + 50, ["far"] * 3)
    np.testing.assert_array_equal(three.decision_function(X), three.predict_log_proba(X))


def test_a_long_call_says_how_far_it_is_and_a_short_one_nothing(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    CNDPMClassifier(memory_size=30, random_state=0, verbose=True).fit(X[:10], y[:10])
    assert shown.getvalue() == ""
    monkeypatch.setattr(progress, "_AFTER", 0.0)
    monkeypatch.setattr(progress, "_FILE", 0.0)
    model = CNDPMClassifier(memory_size=30, random_state=0, verbose=True).fit(X, y)
    lines = shown.getvalue().splitlines()
    assert len(lines) == 7 and lines[2].startswith("[############            ]  30 of 60 samples,")
    model.partial_fit(X[:20], y[:20])
    assert shown.getvalue().splitlines()[7].startswith("[############            ]  10 of 20 samples,")
    model.set_params(verbose=False).partial_fit(X, y)
    assert len(shown.getvalue().splitlines()) == 10
    with pytest.raises(TypeError, match="verbose must be True or False; got 'yes'"):
        CNDPMClassifier(verbose="yes").fit(X, y)


def test_targets_of_other_rows_are_refused_and_one_expert_has_a_whole_number(regressor):
    model, X, y = regressor
    with pytest.raises(ValueError, match=r"a target for each row of X; got \(3,\) for 100 rows"):
        IntervalDisplay.from_estimator(model, X, y[:3])
    assert ExpertsDisplay.from_estimator(model).ax_.get_ylim()[0] == -0.5  # its number is 0, not 0.02
