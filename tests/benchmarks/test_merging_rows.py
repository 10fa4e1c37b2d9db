"""Shards get what their way says, both models answer the same rows, and a difference is the one that is printed."""

import sys

import numpy as np
import pytest
from benchmarks.merging import TABLES, WAYS, apart, compared, thirds_by_region, thirds_by_time
from figures.facts import missing_facts

from benchmarks import merging


def test_time_moves_all_columns_and_regions_do_not_overlap():
    x, y = TABLES["two classes that overlap"](0)
    moved, labels, n = thirds_by_time(x, y)
    assert n == 3 and np.array_equal(labels, y)
    assert (moved - x)[[0, -1]] == pytest.approx(np.stack([0 * x[0], 2 * x.std(axis=0)]))
    line = np.stack([np.array([3.0, 1.0, 2.0]), np.array([6.0, 2.0, 4.0])], axis=1)
    ordered, labels, _ = thirds_by_region(line, np.array([3, 1, 2]))
    assert labels.tolist() in ([1, 2, 3], [3, 2, 1]) and ordered[1].tolist() == [2.0, 4.0]


def test_equal_answers_are_not_apart():
    proba = np.array([[0.9, 0.1], [0.2, 0.8]])
    found = apart(proba, proba, np.array(["a", "b"]), np.array(["a", "b"]))
    assert found["largest difference"] == found["mean difference"] == 0
    assert found["log loss, merged"] == pytest.approx(-(np.log(0.9) + np.log(0.8)) / 2) == found["log loss, single"]
    assert apart(proba, proba[::-1], np.array(["a", "b"]), np.array(["a", "b"]))["accuracy, single"] == 0


def test_every_way_is_compared_before_and_after_consolidating_for_every_time():
    x, y = TABLES["two classes that overlap"](0)
    for way in WAYS.values():
        rows = list(compared((x[:90], y[:90]), way, seed=0))
        assert [(row["consolidated"], row["when"]) for row in rows] == [
            (False, "now"), (False, "any"), (True, "now"), (True, "any"),
        ]  # fmt: skip
        assert all(0 <= row["mean difference"] <= row["largest difference"] <= 1 for row in rows)


def test_a_record_names_how_it_was_made(tmp_path, monkeypatch, capsys):
    x, y = TABLES["two classes that overlap"](0)
    monkeypatch.setattr(merging, "TABLES", {"few": lambda _: (x[:60], y[:60])})
    record = tmp_path / "merging.jsonl"
    words = ["merging", "rows", "--seeds", "0", "--commit", "abc1234", "--out", str(record)]
    monkeypatch.setattr(sys, "argv", words)
    merging.main()
    assert missing_facts(record) == [] and len(record.read_text().splitlines()) == 12
    assert "few, thirds by region, any, consolidated" in capsys.readouterr().out
