"""Rows, targets and answers between JSON and a model: what is refused, and what becomes null."""

import numpy as np
import pandas as pd
import pytest

from cndpm import CNDPMClassifier, CNDPMRegressor
from cndpm.serving import Limits
from cndpm.serving.answering import _plain, learnable, rows
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
        ([[1.0], "red"], "column 'size' holds numbers; got something else"),
        ([1.0, ["red"]], "column 'colour' holds categories; got something else"),
        ([1.0, [[]]], "column 'colour' holds categories; got something else"),
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


def test_an_id_has_a_hundred_characters_at_most():
    def parsed(n):
        body = f'{{"X": [[1]], "y": ["a"], "id": "{"i" * n}"}}'.encode()
        return parse_body(body, "/learn", Limits(), n_columns=1).id

    assert parsed(100) == "i" * 100
    for n in (0, 101):
        with pytest.raises(ValueError, match="1 to 100 characters"):
            parsed(n)
