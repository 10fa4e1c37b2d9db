"""Prequential runs: the one loop asks before it teaches, and a stop changes nothing."""

import io
import re

import pytest
from rich.console import Console

from cndpm.experiments import ConfigError, RunSettings, configure, prequential, read_record, run, run_config
from cndpm.experiments.terminal import TerminalMonitor
from cndpm.streams import load_scenario, stream_of_rows
from pausing import kill, paused
from stopping import TIMES, Stop, StopsAt, without_times

FEW = ["learner.n_features=20"]


def windows(folder):
    rows = [row for row in read_record(folder).rows if row["event"] == "window"]
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def flip(learner="cndpm", *overrides, **options):
    quick = ["run.log_points=5", "run.evaluations=0", "run.max_batches=60", *overrides]
    return configure("drift-flip", learner=learner, device="cpu", overrides=quick, **options)


def test_a_run_and_the_iterator_give_the_same_scores(tmp_path):
    config = flip("cndpm", "learner.memory_size=100")
    summary = run_config(config, tmp_path)
    rows = config.scenario.draw(0)
    stream = stream_of_rows(rows.x[:600], rows.y[:600])
    evaluation = prequential(config.build_learner(stream), stream)
    found = [(window.first, window["accuracy"], window["log_loss"], window.experts) for window in evaluation]
    assert found == [(r["first"], r["accuracy"], r["log_loss"], r["experts"]) for r in windows(tmp_path)]
    for key in ("accuracy", "kappa", "log_loss", "n_samples"):
        assert summary["prequential"][key] == evaluation.summary()[key]
    assert summary["prequential_accuracy"] == summary["prequential"]["accuracy"] and summary["accuracy"] is None


def test_the_record_knows_the_changes_and_each_recovery(tmp_path):
    config = configure("drift-flip", learner="slda", device="cpu", overrides=["run.prequential_window=250", *FEW])
    summary = run_config(config, tmp_path)
    assert read_record(tmp_path).rows[0]["changes"] == [3000]
    assert [row["change"] for row in summary["prequential"]["recovery"]] == [3000]
    assert [row["n_samples"] for row in windows(tmp_path)] == [250] * 24


@pytest.mark.parametrize("learner", ["cndpm", "reservoir"])
def test_a_run_that_was_stopped_ends_with_the_same_windows_and_summary(tmp_path, learner):
    config = flip(learner, "learner.memory_size=100", "run.checkpoint_seconds=0", "run.prequential_window=30")
    whole = run_config(config, tmp_path / "whole")
    for stop in (13, 14, 47):
        with pytest.raises(Stop):
            run_config(config, tmp_path / "parts", resume=True, monitor=StopsAt(stop))
    assert without_times(run_config(config, tmp_path / "parts", resume=True)) == without_times(whole)
    assert windows(tmp_path / "parts") == windows(tmp_path / "whole")


def killed():
    return flip("cndpm", "learner.memory_size=100", "run.checkpoint_seconds=0", "run.max_batches=70")


@pytest.mark.slow
def test_a_run_that_was_killed_ends_with_the_same_windows(tmp_path):
    (tmp_path / "killed.py").write_text(
        "from cndpm.experiments import run_config\n"
        "from tests.experiments.test_prequential_run import killed\n"
        "run_config(killed(), 'parts')\n"
    )
    kill(paused(9, "killed.py", folder=tmp_path))
    assert read_record(tmp_path / "parts").status == "interrupted" and len(windows(tmp_path / "parts")) >= 4
    summary = run_config(killed(), tmp_path / "parts", resume=True)
    assert without_times(summary) == without_times(run_config(killed(), tmp_path / "whole"))
    assert windows(tmp_path / "parts") == windows(tmp_path / "whole")


def test_a_scenario_with_test_sets_is_evaluated_both_ways_when_asked(tmp_path):
    options = {"learner": "slda", "device": "cpu", "overrides": ["run.evaluations=0", *FEW]}
    plain = run_config(configure("split-digits", **options), tmp_path / "plain")
    both = run_config(configure("split-digits", prequential=True, **options), tmp_path / "both")
    assert both["accuracy"] == pytest.approx(plain["accuracy"], abs=0.5) and both["prequential"]["n_samples"] == 1442
    assert "prequential" not in plain and read_record(tmp_path / "plain").column("step", "window") == []
    assert [row["change"] for row in both["prequential"]["recovery"]] == list(
        load_scenario("split-digits").build().changes
    )


def test_streams_without_labels_are_scored_in_bits(tmp_path):
    quick = ["run.evaluations=0", "run.max_batches=60", "learner.memory_size=100"]
    learner = {"experts": "gaussian", "features": "identity"}
    config = configure(
        "unlabelled-split-digits",
        device="cpu",
        prequential=True,
        overrides=[*quick, *(f"learner.{key}={value}" for key, value in learner.items())],
    )
    summary = run_config(config, tmp_path)
    assert summary["prequential_bits_per_dim"] == summary["prequential"]["bits_per_dim"]
    assert summary["prequential"]["n_unanswered"] > 0


def test_real_values_are_for_mixtures(tmp_path):
    summary = run_config(
        configure("drift-sign", device="cpu", overrides=["run.max_batches=60", "run.evaluations=0"]), tmp_path
    )
    assert 0 < summary["prequential_error"] < 2 and summary["prequential"]["n_unanswered"] == 10
    with pytest.raises(ConfigError, match="reservoir predicts classes, and drift-sign has real-valued targets"):
        configure("drift-sign", learner="reservoir")


def test_rows_without_test_sets_are_prequential_by_themselves_unless_forbidden():
    assert configure("drift-flip").run.prequential and not configure("split-digits").run.prequential
    assert not configure("drift-flip", overrides=["run.prequential=false"]).run.prequential


def test_ones_own_stream_and_learner_are_run_prequentially(tmp_path):
    rows = load_scenario("drift-flip").draw(0)
    stream = stream_of_rows(rows.x[:300], rows.y[:300], changes=[150], name="mine")
    learner = configure("drift-flip", learner="slda", device="cpu", overrides=FEW).build_learner(stream)
    summary = run(learner, stream, tmp_path, settings=RunSettings(prequential=True, prequential_window=50))
    assert [row["first"] for row in windows(tmp_path)] == [0, 50, 100, 150, 200, 250]
    assert summary["prequential"]["n_samples"] == 300


def test_what_waits_in_the_memory_is_shown_and_not_the_rows_that_are_kept_beside_it(tmp_path):
    shown = io.StringIO()
    config = flip("cndpm", "learner.memory_size=100", "run.evaluations=4")
    run_config(config, tmp_path, monitor=TerminalMonitor(Console(file=shown, width=200)))
    in_memory = [int(n) for n in re.findall(r"memory (\d+)", shown.getvalue())]
    evaluations = [row for row in read_record(tmp_path).rows if row["event"] == "evaluation"]
    assert in_memory == [row["n_in_memory"] for row in evaluations if row["n_in_memory"]]
    assert all(row["n_in_memory"] <= 100 < row["memory_samples"] for row in evaluations[1:]) and in_memory
