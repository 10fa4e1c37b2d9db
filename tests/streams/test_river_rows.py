"""Rows from river: as river's own iterators give them, in numbers."""

import numpy as np
from river.datasets import synth

from cndpm.streams.drift import DRIFTS
from cndpm.streams.river_rows import approval, image_segments, phishing, water_flow
from river import datasets


def test_generated_rows_are_those_of_rivers_generators_in_turn():
    rows = DRIFTS["drift-sine-in-turn"].draw(2)
    for turn, rule in enumerate((0, 1, 0, 1)):
        x, y = next(iter(synth.Sine(classification_function=rule, seed=turn + 21)))
        assert rows.x[2000 * turn].tolist() == list(x.values()) and rows.y[2000 * turn] == y


def test_booleans_become_numbers():
    assert set(np.unique(DRIFTS["drift-mixed"].draw(0).x[:, :2])) == {0.0, 1.0}


def test_data_are_in_rivers_order_and_classes_in_alphabetical_one():
    segments, sites, polls = image_segments(), phishing(), approval()
    x, name = next(iter(datasets.ImageSegments()))
    assert segments.x[0].tolist() == list(x.values())
    assert segments.y[0] == sorted({label for _, label in datasets.ImageSegments()}).index(name)
    assert sites.y.tolist() == [int(y) for _, y in datasets.Phishing()]
    assert polls.y.tolist() == [y for _, y in datasets.TrumpApproval()]


def test_the_flow_of_water_is_told_the_hour_the_weekday_and_the_day():
    rows, times = water_flow(), [x["Time"] for x, _ in datasets.WaterFlow()]
    hours = np.round(np.arctan2(rows.x[:, 0], rows.x[:, 1]) * 24 / (2 * np.pi)).astype(int) % 24
    days = np.round(np.arctan2(rows.x[:, 2], rows.x[:, 3]) * 7 / (2 * np.pi)).astype(int) % 7
    assert hours.tolist() == [time.hour for time in times] and days.tolist() == [time.weekday() for time in times]
    assert rows.x[0, 4] == 0 and np.all(np.diff(rows.x[:, 4]) > 0)
