"""Scenarios of rows: by name, by seed, in their order, and the rows of the published comparison at seed 0."""

import hashlib

import numpy as np
import pytest

from cndpm.extras import MissingExtraError
from cndpm.names import UnknownNameError
from cndpm.streams import DriftScenario, load_scenario, scenario_names
from cndpm.streams.drift import DRIFTS
from cndpm.validation import ConfigError

# name: shape, classes (None: values), changes, the beginning of the SHA-256 of the rows and labels of seed 0
PUBLISHED = {
    "drift-flip": ((6000, 5), 2, (3000,), "98ffdf890103"),
    "drift-rotate": ((6000, 5), 2, (3000,), "c09c64e077a0"),
    "drift-sine": ((6000, 2), 2, (3000,), "e32d553a7e03"),
    "drift-sine-in-turn": ((8000, 2), 2, (2000, 4000, 6000), "e818e2d6d6a6"),
    "drift-mixed": ((6000, 4), 2, (3000,), "2f7ead2c266d"),
    "drift-sea": ((6000, 3), 2, (2000, 4000), "61f17c30dfec"),
    "drift-agrawal": ((6000, 9), 2, (2000, 4000), "f61f1fbe9f91"),
    "drift-hyperplane": ((6000, 10), 2, (), "f2ba34304ecf"),
    "drift-rbf": ((6000, 10), 4, (), "bf37eb515003"),
    "drift-turning": ((6000, 10), 3, (), "0d74b9377309"),
    "drift-image-segments": ((2310, 18), 7, (), "5eb05ff485e9"),
    "drift-phishing": ((1250, 9), 2, (), "ef238814f598"),
    "drift-in-turn": ((8000, 5), 2, (2000, 4000, 6000), None),
    "drift-scales": ((5000, 8), 2, (1000, 2000, 3000, 4000), None),
    "drift-sign": ((6000, 5), None, (3000,), None),
    "drift-water-flow": ((1268, 5), None, (), None),
    "drift-approval": ((1001, 6), None, (), None),
}


def test_every_scenario_of_rows_is_listed_here_and_by_name():
    assert set(PUBLISHED) == set(DRIFTS) <= set(scenario_names())


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_scenario_has_the_published_rows_at_seed_0_and_knows_its_changes(name):
    shape, n_classes, changes, digest = PUBLISHED[name]
    scenario = load_scenario(name)
    rows, stream = scenario.draw(0), scenario.build(seed=0)
    assert (rows.x.shape, stream.n_classes, stream.changes) == (shape, n_classes, changes)
    assert stream.target == scenario.target == ("classes" if n_classes else "values")
    assert np.array_equal(stream.x.numpy(), rows.x.astype(np.float32)) and len(stream.y) == len(rows.y)
    if digest is not None:
        assert hashlib.sha256(rows.x.tobytes() + rows.y.tobytes()).hexdigest().startswith(digest)


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name not in ("drift-image-segments", "drift-phishing")])
def test_generated_rows_follow_the_seed_and_data_do_not(name):
    is_data = name in ("drift-water-flow", "drift-approval")
    first, other = (DRIFTS[name].draw(seed) for seed in (0, 1))
    assert np.array_equal(first.x, other.x) == is_data


def test_no_two_seeds_share_a_part_of_a_stream():
    first, other = (DRIFTS["drift-sine-in-turn"].draw(seed).x.reshape(4, 2000, 2) for seed in (0, 1))
    assert not any(np.array_equal(a, b) for a in first for b in other)


@pytest.mark.parametrize("options", [{"epochs": 2}, {"repeats": 2}, {"fraction": 0.5}, {"class_order": [1, 0]}])
def test_options_that_would_change_the_rows_are_refused(options):
    with pytest.raises(ConfigError, match="drift-flip is a stream of rows in a fixed order"):
        load_scenario("drift-flip", **options)


def test_the_batch_size_may_be_chosen():
    assert load_scenario("drift-flip", batch_size=25).build().n_batches == 240
    with pytest.raises(ValueError, match="batch_size"):
        load_scenario("drift-flip", batch_size=0)


def test_unknown_rows_are_refused_with_the_nearest_names():
    with pytest.raises(ValueError, match="Did you mean drift-flip"):
        DriftScenario(name="mine", rows="drift-flop")
    with pytest.raises(UnknownNameError, match="drift-sine"):
        load_scenario("drift-sinn")


def test_rivers_rows_name_the_extra_that_brings_them(monkeypatch):
    monkeypatch.setattr("cndpm.extras.is_installed", lambda module: module != "river")
    with pytest.raises(MissingExtraError, match=r"pip install 'cndpm\[river\]'"):
        load_scenario("drift-sine").build()
    assert load_scenario("drift-flip").build().n_batches == 600
