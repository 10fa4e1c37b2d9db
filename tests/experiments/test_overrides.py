"""``--set``: any value arrives as it was meant, any mistake is named."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experiments.config import RunSettings
from cndpm.experiments.overrides import parse_overrides, parse_value
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError, validate

plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(plain_values)
def test_every_json_value_is_read_as_that_value(value):
    assert parse_value(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("null", None), ("none", "none"), ("True", True), ("bernoulli", "bernoulli"), ("-6e2", -600.0), ("", "")],
)
def test_words_that_are_not_json_are_read_as_a_person_means_them(text, value):
    assert parse_value(text) == value


def test_of_two_overrides_of_one_field_the_later_counts():
    texts = ["run.evaluations=3", "run.evaluations=5"]
    assert parse_overrides(texts, ["run"]) == {"run": {"evaluations": 5}}


def test_dotted_fields_become_nested():
    assert parse_overrides(["scenario.transform.size=32"], ["scenario"]) == {"scenario": {"transform": {"size": 32}}}


def test_values_may_hold_equals_signs():
    assert parse_overrides(["learner.note=a=b"], ["learner"]) == {"learner": {"note": "a=b"}}


@pytest.mark.parametrize("text", ["learner.x", "x=1", "learner.=1", "=1", ""])
def test_an_override_without_section_field_and_value_is_refused(text):
    with pytest.raises(ConfigError, match=r"SECTION\.FIELD=VALUE"):
        parse_overrides([text], ["learner"])


def test_an_unknown_section_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="learner"):
        parse_overrides(["lerner.x=1"], ["learner", "run"])


def test_an_unknown_field_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="evaluation_samples"):
        validate(RunSettings, {"evaluation_sample": 5}, "run")


def test_a_value_out_of_range_names_field_rule_and_value():
    with pytest.raises(ConfigError, match=r"run\.log_points: .*greater than or equal to 1; got 0"):
        validate(RunSettings, {"log_points": 0}, "run")


@given(st.text(max_size=30))
def test_any_text_is_either_an_override_or_refused_with_a_reason(text):
    try:
        parsed = parse_overrides([text], ["learner"])
    except (ConfigError, UnknownNameError) as error:
        assert str(error)
    else:
        assert len(parsed["learner"]) == 1


HOSTILE = {
    "deep": (["learner.x=" + "[" * 9999], "nested a few levels deep at most"),
    "long": (["learner.=" + "1" * 9999], "reads SECTION.FIELD=VALUE"),
    "both": (
        ["learner.experts=[1]", "learner.experts.kind=a"],
        "is a part of a field that another override has set to",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_overrides_get_one_short_line(case):
    texts, message = HOSTILE[case]
    with pytest.raises(ConfigError, match=message) as refused:
        parse_overrides(texts, ["learner"])
    assert len(str(refused.value)) < 300


def test_a_number_of_thousands_of_digits_is_text():
    assert parse_value("1" * 5000) == "1" * 5000
