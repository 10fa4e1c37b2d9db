import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.estimators.missing import complete_rows, fill_missing, log_mean_over, mean_over


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
    assert fill_missing(np.array([[1, np.nan]], dtype=np.float32), rows[:0, :2]).tolist() == [[1, 0]]


def test_rows_of_one_call_complete_each_other_but_not_themselves():
    rng = np.random.default_rng(0)
    known = rng.normal(size=(50, 2)).astype(np.float32)
    rows = (rng.normal(size=(30, 2)) * 0.1 + [40, 70]).astype(np.float32)  # of a kind that is not known yet
    rows[3, 1] = np.nan
    assert abs(fill_missing(rows, known)[3, 1] - 70) < 0.2
    assert abs(fill_missing(rows[3:4], known)[0, 1]) < 3


def test_many_rows_are_completed_in_parts_that_know_the_parts_before():
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(1200, 2)) + np.repeat([[0, 0], [90, 50]], 600, axis=0)).astype(np.float32)
    truth = rows[:, 1].copy()
    rows[::7, 1] = np.nan
    assert np.abs(fill_missing(rows, rows[:0])[:, 1] - truth).max() < 5


def test_a_row_with_gaps_is_completed_by_its_neighbours_and_answers_are_averaged():
    known = np.array([[0, 0]] * 10 + [[9, 4], [9, 6]] * 5, dtype=np.float32)
    rows = np.array([[1, 2], [9, np.nan], [3, 4]], dtype=np.float32)
    ways = complete_rows(rows, known)
    assert ways.starts.tolist() == [0, 1, 11] and ways.rows[[0, 11]].tolist() == [[1, 2], [3, 4]]
    values = ways.rows[:, 1].astype(float)
    assert mean_over(ways, values).tolist() == pytest.approx([2, 5, 4])
    assert log_mean_over(ways, -values).tolist() == pytest.approx([-2, np.log((np.exp(-4) + np.exp(-6)) / 2), -4])
    assert mean_over(None, values) is values and log_mean_over(None, values) is values


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


def test_answers_are_averaged_over_what_is_missing():
    """Of two clouds that share x0, either x1 is as probable: what lies between them is not what is answered for."""
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal([0, -9], 0.3, (200, 2)), rng.normal([0, 9], 0.3, (200, 2))])
    y = np.repeat([-1.0, 1.0], 200)
    holes = np.array([[x0, np.nan] for x0 in np.linspace(-0.3, 0.3, 21)])
    regressor = CNDPMRegressor(memory_size=100, random_state=0).fit(X, y)
    mean, deviation = regressor.predict(holes, return_std=True)
    assert abs(mean.mean()) < 0.4 and (mean**2 + deviation**2).tolist() == pytest.approx([1] * 21, abs=0.2)
    assert regressor.explain(holes).std.tolist() == deviation.tolist()
    classifier = CNDPMClassifier(memory_size=100, random_state=0).fit(X, y)
    proba = classifier.predict_proba(holes)
    assert abs(proba[:, 0].mean() - 0.5) < 0.2 and np.allclose(proba @ [-1, 1], mean, atol=0.1)
    density = CNDPMDensity(memory_size=100, false_alarm_rate=0.01, random_state=0).fit(X)
    assert (density.predict(holes) == 1).all() and density.predict([[0, 0]]) == -1
    assert density.novelty(holes).max() < 4.6 < density.novelty([[0, 0]])[0]


def test_a_density_learns_rows_with_gaps(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3)) @ [[1, 1, 0], [0, 1, 1], [0, 0, 1]] + np.repeat([[0], [30]], 200, axis=0)
    holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    holes = holes[~np.isnan(holes).all(axis=1)]
    model = CNDPMDensity(memory_size=100, random_state=0)
    for start in range(0, len(holes), 50):
        model.partial_fit(holes[start : start + 50])
    assert model.consolidate().n_experts_ == 2
    assert model.score(X) > model.score(X + 15) + 10
    assert (model.predict(holes) == 1).mean() > 0.9
    model.save(tmp_path / "model.cndpm")
    assert np.array_equal(CNDPMDensity.load(tmp_path / "model.cndpm").score_samples(holes), model.score_samples(holes))


def test_what_cannot_be_completed_is_refused():
    X, y = np.random.default_rng(2).normal(size=(30, 2)), np.arange(30) % 2
    hole = np.array([[np.nan, 1.0]])
    model = CNDPMClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="all columns of row 1"):
        model.predict(np.array([[0, 0], [np.nan, np.nan]]))
    with pytest.raises(ValueError, match="n_exemplars=0 keeps none"):
        CNDPMClassifier(n_exemplars=0, random_state=0).fit(X, y).predict(hole)
    with pytest.raises(ValueError, match="n_exemplars=0 keeps none"):
        CNDPMDensity(n_exemplars=0, random_state=0).fit(np.concatenate([X, hole]))
    with pytest.raises(ValueError, match="infinity"):
        model.predict([[np.inf, 0.0]])


def test_a_row_is_completed_by_others_alone_among_the_rows_of_its_call():
    """Against the formula written out: the row itself, completed for a first time, is not one of the ten nearest."""
    rng = np.random.default_rng(0)
    known, other = rng.normal(size=(12, 2)).astype(np.float32), rng.normal(size=2).astype(np.float32)
    row = np.array([0.3, np.nan], dtype=np.float32)
    first = fill_missing(row[None], known)[0]
    scale = np.concatenate([known, first[None], other[None]]).astype(np.float64).std(axis=0)[0]
    others = np.concatenate([known, other[None]])
    distance = ((others[:, 0] - row[0]) / scale) ** 2
    nearest = np.argsort(distance)[:10]
    weights = np.exp(-0.5 * (distance[nearest] - distance[nearest].min()) / (0.25 * distance[nearest].mean()))
    filled = fill_missing(np.stack([row, other]), known)
    assert filled[0, 1] == pytest.approx((weights * others[nearest, 1]).sum() / weights.sum(), rel=1e-4)


def test_later_rows_of_a_call_are_completed_by_earlier_ones():
    known, new = np.zeros((20, 2), dtype=np.float32), np.tile(np.float32([9, 5]), (500, 1))
    late = np.concatenate([new, np.float32([[9, np.nan]] * 3)])
    np.testing.assert_allclose(fill_missing(late, known)[500:, 1], 5, atol=1e-3)


def test_a_column_that_no_neighbour_has_gets_the_mean_of_the_values_that_are_there():
    rows = np.full((13, 2), np.nan, dtype=np.float32)
    rows[:, 0] = np.arange(13) * 1e-3
    rows[12] = 100, 8
    np.testing.assert_allclose(fill_missing(rows, rows[:0])[:, 1], 8, rtol=1e-3)


def test_a_column_that_hardly_varies_does_not_choose_the_neighbours():
    known = np.float32([[0, -10, 1]] * 10 + [[0.001, 10, 2]] * 10)
    (filled,) = fill_missing(np.float32([[0.004, -10, np.nan]]), known)
    assert filled[2] == pytest.approx(1, abs=0.01)
