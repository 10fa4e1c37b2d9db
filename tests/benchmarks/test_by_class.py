"""Sorted and shuffled rows are compared on the same rows, and the differences are those that are printed."""

import json
import sys

import numpy as np
import pytest
from benchmarks.by_class import TABLES, WAYS, compared, learned, summary
from figures.facts import missing_facts

from benchmarks import by_class


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_the_classes_of_its_name(name):
    x, y = TABLES[name](0)
    named = [int(word) for word in name.split() if word.isdigit()]
    assert len(x) == len(y) and (not named or len(np.unique(y)) == named[0])


def test_models_learn_the_rows_in_their_order_however_they_are_given():
    x, y = TABLES["wine"](0)
    for size in WAYS.values():
        model = learned(x[y < 2], y[y < 2], size, seed=0)
        assert model.classes_.tolist() == [0, 1] and model.score(x[y < 2], y[y < 2]) > 0.9


def test_a_comparison_has_an_answer_of_every_kind_before_and_after_consolidating():
    before, after = compared(TABLES["blobs, 2 classes"](0), 50, seed=0)
    assert (before["consolidated"], after["consolidated"]) == (False, True)
    assert all(0 <= before[key] <= 100 for key in ("sorted", "sorted, any", "shuffled"))


def test_the_summary_has_mean_and_worst_with_its_place():
    about = {"way": "fit", "seed": 0, "sorted, any": 100.0, "shuffled": 90.0}
    text = summary([about | {"table": "a", "sorted": 60.0}, about | {"table": "b", "sorted": 100.0}])
    assert "below when='any': 20.00 points in the mean, 40.00 at worst (a, fit, seed 0)" in text
    assert "below shuffled: 10.00 points in the mean, 30.00 at worst (a, fit, seed 0)" in text


def test_a_record_names_how_it_was_made(tmp_path, monkeypatch, capsys):
    record = tmp_path / "by-class.jsonl"
    words = ["by_class", "--tables", "wine", "--seeds", "1", "--commit", "abc1234", "--out", str(record)]
    monkeypatch.setattr(sys, "argv", words)
    by_class.main()
    assert missing_facts(record) == []
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert {(line["way"], line["consolidated"]) for line in lines} == {(w, c) for w in WAYS for c in (False, True)}
    assert "in the mean" in capsys.readouterr().out
