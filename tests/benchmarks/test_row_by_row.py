"""Streams are those of the figures, models answer a row before they learn it, and a record says how long it took."""

import json
import sys

import numpy as np
import pytest
from benchmarks.comparison import overall, table, times
from benchmarks.local_streams import STREAMS, draw
from benchmarks.row_by_row import MODELS, LabelBefore, Neighbours, follow
from figures.facts import missing_facts

from benchmarks import drift, local
from cndpm.streams import Rows

KNOWN = {
    "board": (83.118, 61335.937),
    "objects": (91.755, -4072.418),
    "demand": (89.861, 5301.373),
    "spirals": (49.492, -45.395),
    "clusters": (6.651, -2676.035),
    "squares": (66.671, 37274.111),
}
"""Labels as the one before (%), and the sum of all columns, of the rows that the figures belong to."""


@pytest.mark.parametrize("name", STREAMS)
def test_seed_0_draws_the_rows_of_the_figures_and_another_seed_others(name):
    rows, others = draw(name), draw(name, seed=1)
    alike = 100 * (rows.y[1:] == rows.y[:-1]).mean()
    assert (alike, rows.x.sum()) == pytest.approx(KNOWN[name], abs=2e-3)
    assert rows.x.shape[1] == others.x.shape[1] and not np.array_equal(rows.x[:99], others.x[:99])


def few(n=40):
    rng = np.random.default_rng(0)
    y = np.arange(n) // 2 % 2
    return Rows(rng.normal(size=(n, 2)) + 9 * y[:, None], y)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_answers_before_it_learns(name):
    pytest.importorskip("river")
    rows = few()
    answers, told = follow(name, rows, seed=0)
    assert len(answers) == told["n_rows"] == 40 and set(answers) <= {0, 1, 2}
    assert answers[2] == 0  # nobody knows the second label before it came
    assert 0 < told["longest_ms"] <= 1000 * told["seconds"] and told["processor_seconds"] > 0


def test_the_label_before_is_what_it_is_called():
    assert follow("label before", few(), seed=0)[0] == [2, *few().y[:-1].tolist()]
    assert LabelBefore().predict_one({}) is None


def test_neighbours_are_the_nearest_of_the_latest_rows():
    model = Neighbours(n_neighbours=2, n_kept=4)
    assert model.predict_one({0: 0.0}) is None
    for x, y in ((0.0, 7), (0.1, 1), (0.2, 1), (0.3, 7), (9.0, 7)):  # the fifth takes the place of the first
        model.learn_one({0: x}, y)
    assert (model.predict_one({0: 0.0}), model.predict_one({0: 9.0})) == (1, 7)
    assert (model.predict_one({0: 0.24}), model.predict_one({0: 0.26})) == (1, 7)  # the nearer of two counts more


def test_times_are_a_mean_and_the_longest_of_all_seeds():
    results = [
        {"model": model, "stream": "a", "accuracy": 50.0, "seconds": s, "n_rows": 100, "longest_ms": 1000 * s}
        | {"longest_processor_ms": 1.0, "processor_seconds": s}
        for model, seconds in (("cndpm", (1.0, 3.0)), ("ARF", (1.0, 1.0)))
        for s in seconds
    ]
    found = overall(results, ["a"], ["cndpm", "ARF"])["cndpm"]
    assert (found["milliseconds a row"], found["longest row (ms)"], found["seconds / ARF's"]) == (20.0, 3000.0, 2.0)
    assert "| a | 20.00; 3000 | 10.00; 1000 |" in times(results, ["a"], ["cndpm", "ARF"])
    del results[0]["longest_ms"]
    assert "| longest row (ms) | – | 1000.00 |" in table(results, ["a"], ["cndpm", "ARF"])


def test_local_streams_leave_a_record(tmp_path, monkeypatch, capsys):
    pytest.importorskip("river")
    monkeypatch.setitem(STREAMS, "board", lambda rng: tuple(few()[:2]))
    out = run(local, tmp_path, monkeypatch, "--streams", "board", "--models", "cndpm", "label before")
    assert set(out["streams"]["board"]) == {"cndpm", "label before"}
    assert "| board | " in capsys.readouterr().out


def test_drifting_streams_are_followed_row_by_row(tmp_path, monkeypatch, capsys):
    pytest.importorskip("river")
    monkeypatch.setattr(drift.DriftScenario, "draw", lambda self, seed=0: few())
    out = run(drift, tmp_path, monkeypatch, "--row-by-row", "--streams", "drift-flip", "--models", "cndpm", "ARF")
    assert out["results"][0]["row_by_row"] and out["models"]["cndpm"]["longest row (ms)"] > 0
    assert "at most, on a stream" in capsys.readouterr().out


def run(module, tmp_path, monkeypatch, *words):
    record = tmp_path / "record.json"
    how = ["--seeds", "0", "--commit", "abc1234", "--out", str(record)]
    monkeypatch.setattr(sys, "argv", [module.__name__, *words, *how])
    module.main()
    assert missing_facts(record) == []
    return json.loads(record.read_text())
