"""What is wrong with values is named by field, rule and value."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError, describe_errors, shown, validate


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    width: int = Field(1, ge=1)


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = "x"
    inner: Inner = Inner()
    several: tuple[Inner, ...] | None = None

    @model_validator(mode="after")
    def _check(self):
        if self.name == "wide":
            raise ValueError("wide is no name; call it broad")
        return self


def test_values_that_are_allowed_become_a_model():
    assert validate(Outer, {"inner": {"width": 3}}, "part").inner.width == 3


def test_an_unknown_field_is_answered_with_the_nearest_at_its_depth():
    with pytest.raises(UnknownNameError, match=r"field in part\.inner called 'widht'. Did you mean width"):
        validate(Outer, {"inner": {"widht": 3}}, "part")
    with pytest.raises(UnknownNameError, match=r"field in part\.several\.1 called 'widht'. Did you mean width"):
        validate(Outer, {"several": [{}, {"widht": 3}]}, "part")


def test_every_problem_is_named_with_field_rule_and_value():
    with pytest.raises(ConfigError, match=r"part\.name: .*; got 5; part\.inner\.width: .*greater.*; got 0"):
        validate(Outer, {"name": 5, "inner": {"width": 0}}, "part")


def test_a_rule_of_ones_own_speaks_for_itself():
    with pytest.raises(ConfigError, match=r"^part: wide is no name; call it broad$"):
        validate(Outer, {"name": "wide"}, "part")


def test_without_a_section_fields_stand_alone():
    with pytest.raises(ValidationError) as caught:
        Outer(name=5)
    assert describe_errors(caught.value).startswith("name: ")


class Sizes(BaseModel):
    size: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    rate: float = Field(0.1, ge=0.1)
    share: float = Field(0.1, ge=0.1)


def test_a_field_of_several_types_is_named_once_with_all_that_it_may_be():
    rule = r"^part\.size: Input should be a valid integer, or 'auto'; got 'abc'$"
    with pytest.raises(ConfigError, match=rule):
        validate(Sizes, {"size": "abc"}, "part")


def test_two_fields_with_the_same_wrong_value_stay_two():
    with pytest.raises(ConfigError, match=r"part\.rate: .*; got 0; part\.share: .*; got 0"):
        validate(Sizes, {"rate": 0, "share": 0}, "part")


class Item(BaseModel):
    size: int


class Items(BaseModel):
    items: tuple[Item, ...] = Field(min_length=1)


def test_what_follows_from_a_wrong_item_is_not_told():
    with pytest.raises(ConfigError, match=r"^list.items.0.size: Input should be a valid integer.*; got 'a'$"):
        validate(Items, {"items": [{"size": "a"}]}, "list")
    with pytest.raises(ConfigError, match=r"at least 1 item"):
        validate(Items, {"items": []}, "list")


def test_of_many_problems_the_first_three_are_told():
    with pytest.raises(ConfigError) as refused:
        validate(Items, {"items": [{"size": "a"}] * 9}, "list")
    assert str(refused.value).count("list.items") == 3
    assert str(refused.value).endswith("; and 6 more")


def test_a_value_is_shown_in_one_line_of_bounded_length():
    nested = []
    for _ in range(50):
        nested = [nested, nested]
    values = (nested, "a\n" * 9999, 10**4000, 10**9000, {i: i for i in range(999)})
    assert all(len(shown(value)) < 210 for value in values)
    assert "\n" not in shown("a\nb")
