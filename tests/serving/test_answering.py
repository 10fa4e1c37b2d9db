"""Rows, targets and answers between JSON and a model: what is refused, and what becomes null."""

import json

import numpy as np
import pandas as pd
import pytest

from cndpm import CNDPMClassifier, CNDPMRegressor
from cndpm.serving import Limits
from cndpm.serving.answering import _plain, described, learnable, predictions, rows
from cndpm.serving.bodies import parse_body


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_one_target_that_is_not_finite_refuses_all(wrong):
    with pytest.raises(ValueError, match="finite"):
        learnable(CNDPMRegressor(), [1.0, wrong], 2)


def test_a_target_that_is_too_large_for_any_number_is_refused():
    with pytest.raises(ValueError, match="y holds a whole number that is too large"):
        learnable(CNDPMRegressor(), [1.0, 10**400], 2)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([10**400, "red"], "column 'size' holds a whole number that is too large"),
        ([[1.0], "red"], r"column 'size' holds numbers; got \[1.0\]"),
        (["1.5", "red"], "column 'size' holds numbers; got '1.5'"),
        ([1.0, ["red"]], r"column 'colour' holds categories, \['blue', 'red'\]; got \['red'\]"),
        ([1.0, 0], r"column 'colour' holds categories, \['blue', 'red'\]; got 0"),  # a code would count as unknown
    ],
)
def test_what_is_no_value_of_a_column_is_refused_by_its_name(row, reason):
    colours = ["red", "blue"] * 20
    table = pd.DataFrame({"size": np.arange(40.0), "colour": pd.Categorical(colours)})
    model = CNDPMClassifier(memory_size=20, random_state=0, settings={"representations": "one"}).fit(table, colours)
    with pytest.raises(ValueError, match=reason):
        rows([row], model, most=10)


def test_one_row_of_nothing_but_null_is_refused(model):
    width = model.n_features_in_
    with pytest.raises(ValueError, match="row 1 holds nothing but null"):
        rows([[1.0] * width, [None] * width], model, most=10)


def test_numbers_that_json_does_not_have_become_null():
    assert _plain(np.array([[1.5, np.nan], [np.inf, -np.inf]])) == [[1.5, None], [None, None]]


def test_values_for_the_next_rows_follow_errors_that_last_and_come_after_rows_that_wait():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(300, 2)).astype(np.float32), np.zeros(300)
    for i in range(1, 300):
        noise[i] = 0.9 * noise[i - 1] + rng.normal(0, 0.2)
    model = CNDPMRegressor(random_state=0)
    for start in range(0, 300, 10):
        model.partial_fit(X[start : start + 10], X[start : start + 10, 0] + noise[start : start + 10])
    said = {when: predictions(model, X[:2], when)[0]["prediction"] for when in ("now", "next")}
    assert said == {when: model.predict(X[:2], when=when).tolist() for when in said} and said["now"] != said["next"]
    after, _ = predictions(model, X[:2], "next", n_before=1)
    np.testing.assert_allclose(after["prediction"], model.predict(X[[0, 0, 1]], when="next")[1:])


def test_a_model_that_keeps_no_rows_refuses_gaps_and_tells_what_waits():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = CNDPMClassifier(n_exemplars=0).partial_fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="cannot complete: it keeps no rows"):
        rows([[1.0, None]], model, most=10)
    assert (described(model)["memory"], described(model)["n_experts"]) == (30, 0)


def test_categories_that_are_no_plain_words_are_shown_as_text():
    sizes = np.arange(40.0)
    table = pd.DataFrame({"size": pd.cut(sizes, [-1, 20, 50])})
    model = CNDPMClassifier(memory_size=20).fit(table, sizes > 20)
    assert json.loads(json.dumps(described(model)))["categories"] == [["(-1, 20]", "(20, 50]"]]


def test_an_id_has_a_hundred_characters_at_most():
    def parsed(n):
        body = f'{{"X": [[1]], "y": ["a"], "id": "{"i" * n}"}}'.encode()
        return parse_body(body, "/learn", Limits(), n_columns=1).id

    assert parsed(100) == "i" * 100
    for n in (0, 101):
        with pytest.raises(ValueError, match="1 to 100 characters"):
            parsed(n)
