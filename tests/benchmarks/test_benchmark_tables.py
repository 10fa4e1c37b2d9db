"""Tables are scored on rows that were held out, learning curves on the same ones, and temperatures only help."""

import json
import sys

import numpy as np
import pytest
from benchmarks.evidence import _calibrated, _split, _tempered
from benchmarks.tables import CURVES, SECTIONS, clustered, curves, curves_of, friedman, made
from figures.facts import missing_facts
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from benchmarks import tables


def test_hard_tables_are_learned_by_both_models():
    for section in (made, friedman):
        rows = list(section([0, 1], n=200))
        assert [row["model"] for row in rows] == ["cndpm", "gradient boosting"]
        assert all(len(row["scores"]) == 2 and row["mean"] <= 100 for row in rows)


def line(n, seed):
    x = np.random.default_rng(seed).normal(size=(n, 1))
    return x, x[:, 0]


def test_a_curve_is_of_ever_more_of_the_same_rows():
    assert curves_of(lambda _: LinearRegression(), line, 0, (2, 9)) == pytest.approx([100.0, 100.0])
    some, all_ = (
        curves_of(lambda _: DummyRegressor(), line, 0, (2, 9)),
        curves_of(lambda _: DummyRegressor(), line, 0, (9,)),
    )
    assert some[1] == all_[0] != some[0]


def test_what_more_rows_cost_is_the_deepest_fall_below_an_earlier_score(monkeypatch):
    for name in list(CURVES)[1:]:
        monkeypatch.delitem(CURVES, name)
    scores = {0: [10.0, 30.0, 26.0, 25.0], 1: [20.0, 10.0, 15.0, 40.0]}
    monkeypatch.setattr(tables, "curves_of", lambda make, draw, seed, sizes: scores[seed][: len(sizes)])
    lost = [row for row in curves([0, 1], sizes=(1, 2, 4, 8)) if "lost" in row]
    assert [(row["model"], row["by seed"]) for row in lost] == [
        ("cndpm", [5.0, 10.0]), ("gradient boosting", [0.0, 10.0]),
    ]  # fmt: skip
    assert lost[0]["lost"] == 0.0  # means 15, 20, 20.5, 32.5


def test_the_best_temperature_is_never_worse_and_undoes_one():
    rng = np.random.default_rng(0)
    log_odds = rng.normal(size=4000)
    truth = (rng.uniform(size=4000) < 1 / (1 + np.exp(-log_odds))).astype(int)
    sharp = 4 * np.stack([-np.logaddexp(0, log_odds), -np.logaddexp(0, -log_odds)], axis=1)
    own, best = _tempered(sharp, truth)
    assert best < own and best == pytest.approx(_tempered(sharp / 4, truth)[0], rel=0.01)


def test_calibration_is_measured_now_and_for_any_time():
    found = dict(_calibrated("made", [_split(*clustered(300, 0), 0)]))
    assert [name.split(":")[0] for name in found] == ["made", "made, any"]
    assert all(own / best == ratio >= 1 for own, best, ratio in found.values())


def test_a_record_names_how_it_was_made(tmp_path, monkeypatch, capsys):
    record = tmp_path / "tables.jsonl"
    monkeypatch.setitem(SECTIONS, "friedman", lambda seeds: friedman(seeds, n=100))
    words = ["tables", "friedman", "--seeds", "0", "--commit", "abc1234", "--out", str(record)]
    monkeypatch.setattr(sys, "argv", words)
    tables.main()
    assert missing_facts(record) == []
    assert [json.loads(line)["model"] for line in record.read_text().splitlines()] == ["cndpm", "gradient boosting"]
    assert "friedman3" in capsys.readouterr().out
