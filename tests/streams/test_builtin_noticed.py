"""Facts of the named scenarios, field by field."""

from __future__ import annotations

import pytest

from cndpm.streams import load_scenario


@pytest.mark.parametrize("name", ["split-digits", "split-mnist", "split-fashion", "split-cifar10", "split-cifar100"])
def test_a_split_presents_every_task_for_one_epoch(name: str):
    stages = load_scenario(name).stages
    assert [(stage.epochs, stage.samples, stage.steps) for stage in stages] == [(1, None, None)] * len(stages)


def test_fuzzy_split_mnist_begins_and_ends_with_six_thousand_samples_of_one_task():
    stages = load_scenario("fuzzy-split-mnist").stages
    assert [stage.samples for stage in stages] == [6000, *[2400] * 20, 6000]
    assert [len(stage.subsets) for stage in stages] == [1, *[2] * 20, 1]


def test_mnist_turns_by_twenty_degrees_a_stage():
    subsets = [stage.subsets[0] for stage in load_scenario("rotated-mnist").stages]
    assert [subset.rotation for subset in subsets] == [0, 20, 40, 60, 80]


def test_the_first_order_of_pixels_is_the_published_one():
    subsets = [stage.subsets[0] for stage in load_scenario("permuted-mnist").stages]
    assert [subset.permutation for subset in subsets] == [None, 1, 2, 3, 4]


def test_split_mnist_for_generation_is_binarised_and_unlabelled():
    scenario = load_scenario("split-mnist-gen")
    assert scenario.transform.binarise
    assert not scenario.labelled
