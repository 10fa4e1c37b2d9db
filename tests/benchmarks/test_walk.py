"""A reader's walk with ten samples is no longer than is written down, and the walks are what they are called."""

from functools import cache

import pytest
from benchmarks.walk import LIMITS, REACHED, WALKS, Walk, exceeded, images, knowing, rows


@cache
def counted(name):
    return WALKS[name]().counts()


@pytest.mark.parametrize("name", LIMITS)
def test_no_walk_gets_longer_than_it_is(name):
    counts = counted(name)
    assert {what: counts[what] for what in REACHED[name] if counts[what] > REACHED[name][what]} == {}


def test_a_batch_of_images_walks_no_farther_than_wanted():
    name = "images: a known batch in a block"
    assert exceeded(name, counted(name)) == []


def test_a_limit_that_is_exceeded_is_named_with_both_numbers():
    counts = dict.fromkeys(("calls", "files", "changes of room"), 0) | {"files": 21}
    assert exceeded("rows: predict", counts) == ["21 files, 20 allowed"]
    assert exceeded("images: predict", counts) == []


def test_a_walk_counts_what_is_called_between_its_ends():
    model = knowing(rows)
    with Walk() as walk:
        model.predict(rows(10)[0])
    assert any(name.endswith("CNDPMClassifier.predict") for _, name in walk.calls)
    n = len(walk.calls)
    model.predict(rows(10)[0])
    assert walk.counts()["calls"] == n > walk.counts()["functions"] >= walk.counts()["files"] > 1


@pytest.mark.parametrize("draw", [rows, images])
def test_the_classes_of_a_walk_are_known(draw):
    x, y = draw(200)
    assert knowing(draw).score(x, y) > 0.95
