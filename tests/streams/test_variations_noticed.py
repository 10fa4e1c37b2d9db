"""Recipes that variations make, field by field."""

from __future__ import annotations

from cndpm.streams import Scenario, load_scenario
from cndpm.streams.variations import recurring


def test_a_visit_is_the_visits_part_of_a_stages_length_and_never_empty():
    subsets = [{"dataset": "digits"}]
    lengths = ({"epochs": 1.5}, {"samples": 7}, {"steps": 10}, {"samples": 2}, {"steps": 1})
    scenario = Scenario(name="a", stages=[{"subsets": subsets, **length} for length in lengths])
    stages = recurring(scenario, visits=3).stages
    assert len(stages) == 15
    found = [(stage.epochs, stage.samples, stage.steps) for stage in stages[:5]]
    assert found == [(0.5, None, None), (None, 2, None), (None, None, 3), (None, 1, None), (None, None, 1)]


def test_gradual_boundaries_are_linear_over_half_a_stage_and_blurred_ones_normal_by_an_eighth():
    for prefix, kind, width in (("gradual", "linear", 0.5), ("blurred", "gaussian", 0.125)):
        blur = load_scenario(f"{prefix}-split-digits").blur
        assert blur is not None
        assert (blur.kind, blur.width) == (kind, width)
