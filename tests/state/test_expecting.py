"""Forms refuse everything that is not what they say, and name it."""

import pytest
import torch

from cndpm.state import (
    StateError,
    check_same_form,
    expect,
    flag,
    integers,
    maybe,
    non_finite,
    nothing,
    number,
    tensor,
    whole,
)

ONES = torch.ones(2, 3, dtype=torch.float64)


def test_sizes_are_found_compared_and_returned():
    state = {"a": ONES, "b": torch.ones(3, dtype=torch.float64)}
    assert expect(state, {"a": tensor("n", "d"), "b": tensor("d")}) == {"n": 2, "d": 3}
    with pytest.raises(StateError, match=r"'b' must have the shape \(n=2\); got \(3,\)"):
        expect(state, {"a": tensor("n", "d"), "b": tensor("n")})
    with pytest.raises(StateError, match=r"'a' must have the shape \(n=2, d=4\)"):
        expect(state, {"a": tensor("n", "d")}, d=4)


@pytest.mark.parametrize(
    ("form", "value", "reason"),
    [
        (tensor("n"), ONES, "must have the shape"),
        (tensor("n", "d"), ONES.float(), "must be of torch.float64"),
        (tensor("n", "d"), 3, "must be a tensor; got a int"),
        (tensor(), torch.tensor(float("inf"), dtype=torch.float64), "finite"),
        (tensor(), torch.tensor(float("nan"), dtype=torch.float64), "finite"),
        (tensor(2, 4), ONES, r"must have the shape \(2, 4\)"),
        (integers("n", low=0), torch.tensor([3, -1]), "from 0 on; got -1"),
        (integers("n", below=3), torch.tensor([3]), "below 3; got 3"),
        (number(), float("nan"), "finite number"),
        (number(0, 1), 2, "from 0 to 1"),
        (number(), True, "finite number"),
        (number(), 10**30, "finite number"),
        (whole(), 1.0, "whole number"),
        (whole(), True, "whole number"),
        (whole(1, 5), 6, "from 1 to 5"),
        (flag(), 0, "true or false"),
        (nothing(), 0, "must be empty"),
        (maybe(whole()), "x", "whole number"),
    ],
)
def test_other_values_are_refused_with_the_reason(form, value, reason):
    with pytest.raises(StateError, match=reason):
        expect({"it": value}, {"it": form})


def test_right_values_pass():
    state = {"a": None, "b": torch.tensor(float("nan")), "c": 0, "d": torch.zeros(0, dtype=torch.int64)}
    expect({"least": torch.tensor([0, 2]), "two": ONES}, {"least": integers("n", low=0, below=3), "two": tensor(2, 3)})
    forms = {"a": maybe(whole()), "b": tensor(dtype=torch.float32, finite=False), "c": number(0, 0)}
    expect(state, {**forms, "d": integers("n", low=5, below=0)})


def test_what_is_missing_is_named_and_what_is_more_is_left_alone():
    with pytest.raises(StateError, match="'b' is missing; there is 'a'"):
        expect({"a": 1}, {"b": whole()})
    expect({"a": 1, "more": object()}, {"a": whole()})
    with pytest.raises(StateError, match="a dictionary with a was expected; got a list"):
        expect([], {"a": whole()})


def test_states_of_another_form_are_told_apart():
    state = {"a": [ONES, 1], "b": None}
    check_same_form(state, {"b": None, "a": [ONES + 1, 2]})
    for other in (
        {"a": [ONES.float(), 1], "b": None},
        {"a": [ONES[:1], 1], "b": None},
        {"a": [ONES], "b": None},
        {"a": [ONES, 1]},
        {"a": [ONES, 1.0], "b": None},
        {"a": []},
    ):
        with pytest.raises(StateError):
            check_same_form(state, other)


def test_tensors_that_are_not_finite_are_found_by_name():
    assert non_finite({"a": ONES, "b": {"c": [ONES / 0]}}) == ["b/c/0"]
    assert non_finite({"a": ONES, "b": -2 * ONES, "c": ONES / 0 * 0}, beyond=2) == ["b", "c"]
