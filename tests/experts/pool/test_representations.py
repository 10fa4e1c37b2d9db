"""Steps of columns: as many of each, but none that tell nothing apart."""

import numpy as np
import pytest
import torch

from cndpm.experts.pool.representations import Representations
from cndpm.state import StateError


def fitted(x, seed=0):
    rng = np.random.default_rng(seed)
    return Representations.fit(x, rng.integers(2, size=len(x)), rng)


def steps_of_columns(maps):
    return np.bincount(maps.columns, minlength=len(maps.middle))


@pytest.mark.parametrize(("d", "each"), [(2, 15), (13, 15), (14, 14), (20, 10), (300, 1)])
def test_columns_of_many_values_have_as_many_steps_each(d, each):
    maps = fitted(np.random.default_rng(0).normal(size=(100, d)))
    assert (steps_of_columns(maps) == each).all()


def test_words_leave_their_steps_to_numbers_where_columns_are_many():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(400, 6)), np.eye(34)[rng.integers(33, size=400)]], axis=1)
    maps = fitted(x)
    assert steps_of_columns(maps).tolist() == [15] * 6 + [1] * 33 + [0]  # the last word never came
    of_words = maps._steps(maps.units(x))[:, maps.columns >= 6]
    assert len(np.unique(of_words, axis=1).T) == of_words.shape[1] == 33


def test_rows_that_do_not_differ_have_no_steps():
    maps = fitted(np.ones((50, 20)))
    assert maps.thresholds.size == maps.products.size == 0
    assert [features.shape for features in maps(np.ones((3, 20)))] == [(3, 20), (3, 220), (3, 20)]


def test_a_step_of_a_column_that_is_not_there_is_refused():
    state = fitted(np.random.default_rng(0).normal(size=(50, 3))).state_dict()
    with pytest.raises(StateError, match="columns"):
        Representations().load_state_dict({**state, "columns": torch.full_like(state["columns"], 3)})
