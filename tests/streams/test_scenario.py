import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cndpm.streams import Blur, Scenario, Stage, Subset, Transform

subsets = st.builds(
    Subset,
    dataset=st.sampled_from(["mnist", "digits"]),
    classes=st.none() | st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple),
    fraction=st.floats(0.01, 1),
    rotation=st.floats(-360, 360),
    permutation=st.none() | st.integers(0, 99),
    task=st.none() | st.text(max_size=5),
)
lengths = st.sampled_from([{"epochs": 1.0}, {"epochs": 2.5}, {"samples": 17}, {"steps": 3}])
stages = st.builds(
    lambda parts, length: Stage(subsets=parts, **length), st.lists(subsets, min_size=1, max_size=3), lengths
)
scenarios = st.builds(
    Scenario,
    name=st.text(min_size=1, max_size=8),
    stages=st.lists(stages, min_size=1, max_size=3),
    batch_size=st.integers(1, 64),
    labelled=st.booleans(),
    transform=st.builds(Transform, size=st.none() | st.integers(1, 64), binarise=st.booleans()),
    blur=st.none() | st.builds(Blur, kind=st.sampled_from(["linear", "gaussian"]), width=st.floats(0.01, 2)),
    fraction=st.floats(0.01, 1),
    iid=st.booleans(),
)


@given(scenarios)
def test_a_scenario_comes_back_from_plain_data_and_from_json(scenario):
    assert Scenario.model_validate(scenario.model_dump()) == scenario
    assert Scenario.model_validate_json(scenario.model_dump_json()) == scenario


def subset(**fields):
    return {"dataset": "digits", **fields}


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ({"subsets": [subset()]}, "one of epochs, samples or steps; got none"),
        ({"subsets": [subset()], "epochs": 1, "steps": 2}, r"got \['epochs', 'steps'\]"),
        ({"subsets": [], "epochs": 1}, "subsets"),
        ({"subsets": [subset(classes=[])], "epochs": 1}, "classes"),
        ({"subsets": [subset(classes=[1, 1])], "epochs": 1}, r"\[1\] appear more often"),
        ({"subsets": [subset(classes=[-1])], "epochs": 1}, "a class is a label"),
        ({"subsets": [subset(weight=1), subset()], "epochs": 1}, "1 of 2 do"),
        ({"subsets": [subset(weight=1)], "epochs": 1, "replacement": False}, "drawn with replacement"),
        ({"subsets": [subset(fraction=0)], "epochs": 1}, "greater than 0"),
        ({"subsets": [subset()], "epochs": 0}, "greater than 0"),
        ({"subsets": [subset()], "epochs": 1, "length": 3}, "length"),
    ],
)
def test_a_stage_that_cannot_be_is_refused_with_the_reason(stage, message):
    with pytest.raises(ValidationError, match=message):
        Stage.model_validate(stage)


@pytest.mark.parametrize(
    ("length", "replacement"),
    [
        ({"epochs": 1}, False),
        ({"epochs": 0.5}, False),
        ({"epochs": 2}, True),
        ({"samples": 5}, True),
        ({"steps": 5}, True),
    ],
)
def test_only_stages_of_at_most_an_epoch_are_drawn_without_replacement(length, replacement):
    assert Stage(subsets=[subset()], **length).with_replacement is replacement
    assert Stage(subsets=[subset()], **length, replacement=not replacement).with_replacement is not replacement


def test_task_names_tell_apart_what_differs():
    variants = [{}, {"classes": [0]}, {"classes": [0, 1]}, {"rotation": 20}, {"permutation": 1}, {"task": "own"}]
    names = [Subset(dataset="mnist", **fields).task_name for fields in variants]
    assert len(set(names)) == len(variants)


def test_a_scenario_cannot_be_changed():
    scenario = Scenario(name="a", stages=[{"subsets": [subset()], "epochs": 1}])
    with pytest.raises(ValidationError, match="frozen"):
        scenario.name = "b"
