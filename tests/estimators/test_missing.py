import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.estimators.missing import fill_missing


def test_a_gap_gets_the_weighted_mean_of_the_ten_rows_nearest_in_the_other_columns():
    rng = np.random.default_rng(0)
    kept = rng.normal(size=(40, 3)).astype(np.float32)
    row = np.array([0.2, np.nan, -0.1], dtype=np.float32)
    scale = kept.astype(float).std(axis=0)
    distance = (((kept - row) / scale)[:, [0, 2]] ** 2).sum(axis=1)
    nearest = np.sort(distance)[:10]
    weights = np.where(distance <= nearest[-1], np.exp(-2 * (distance - nearest[0]) / nearest.mean()), 0)
    expected = weights @ kept[:, 1] / weights.sum()
    filled = fill_missing(row[None], kept)
    assert filled[0, 1] == pytest.approx(expected, rel=1e-4)
    assert filled[0, [0, 2]].tolist() == row[[0, 2]].tolist()


def test_first_rows_complete_each_other_and_an_empty_column_is_0():
    rows = np.array([[1, 2, np.nan], [3, np.nan, np.nan]], dtype=np.float32)
    filled = fill_missing(rows, rows[:0])
    assert np.isfinite(filled).all() and filled[:, 2].tolist() == [0, 0]
    assert filled[1, 1] == 2


def test_rows_without_gaps_are_the_same_rows():
    rows = np.ones((3, 2), dtype=np.float32)
    assert fill_missing(rows, rows) is rows


def test_a_fifth_of_the_cells_missing_costs_less_than_with_means_in_their_place():
    X, y = load_digits(return_X_y=True)
    X, y = X[:900], y[:900]
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    imputer = SimpleImputer().fit(holes[:600])
    scores = []
    for rows in (holes, imputer.transform(holes)):
        model = CNDPMClassifier(memory_size=100, settings={"representations": "one"}, random_state=0)
        scores.append(model.fit(rows[:600], y[:600]).score(rows[600:], y[600:]))
    assert scores[0] >= scores[1]


def test_answers_do_not_depend_on_what_else_is_asked_and_survive_a_file(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 4)) * [1, 5, 1, 1]
    y = X[:, 0] + X[:, 1]
    X[rng.random(X.shape) < 0.1] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    model = CNDPMRegressor(random_state=0).fit(X, y[: len(X)])
    together = model.predict(X[:9])
    assert np.allclose([model.predict(row[None])[0] for row in X[:9]], together, atol=1e-6)
    model.save(tmp_path / "model.cndpm")
    assert np.array_equal(CNDPMRegressor.load(tmp_path / "model.cndpm").predict(X[:9]), together)


def test_what_cannot_be_completed_is_refused():
    X, y = np.random.default_rng(2).normal(size=(30, 2)), np.arange(30) % 2
    hole = np.array([[np.nan, 1.0]])
    model = CNDPMClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="all columns of row 1"):
        model.predict(np.array([[0, 0], [np.nan, np.nan]]))
    with pytest.raises(ValueError, match="n_exemplars=0 keeps none"):
        CNDPMClassifier(n_exemplars=0, random_state=0).fit(X, y).predict(hole)
    with pytest.raises(ValueError, match="NaN"):
        CNDPMDensity(random_state=0).fit(X).predict(hole)
    with pytest.raises(ValueError, match="infinity"):
        model.predict([[np.inf, 0.0]])
