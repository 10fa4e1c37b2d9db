"""``cndpm reproduce``, end to end, on files of MNIST's format."""

import json
from argparse import Namespace
from pathlib import Path

import pytest
from benchmarks.paper import Job, Runner
from figures.missing import MissingRuns

from cndpm.experiments import read_record
from cndpm.paper.experiment import Cell

SHORT = ("--set", "run.max_batches=30", "--set", "run.evaluations=0", "--quiet", "--json")


def test_an_experiment_prints_and_writes_ours_beside_the_papers(cndpm, mnist_dir):
    arguments = (
        "reproduce",
        "fuzzy",
        "--only",
        "finetune,reservoir",
        "--seeds",
        "2",
        "--data-dir",
        str(mnist_dir),
        *SHORT,
    )
    outcome = cndpm(*arguments)
    summary = outcome.json
    assert outcome.code == 0
    assert [cell["learner"] for cell in summary["cells"]] == ["finetune", "reservoir"]
    assert summary["cells"][0]["published"]["accuracy"] == {"value": 28.41, "error": 0.52}
    assert "28.41 ± 0.52" in outcome.err, "the table goes to standard error beside JSON"
    assert "28.41 ± 0.52" in Path("runs/paper/fuzzy/report/tables.md").read_text()
    assert json.loads(Path("runs/paper/fuzzy/summary.json").read_text())["cells"] == summary["cells"]
    assert cndpm(*arguments).json == summary


def test_an_unknown_experiment_is_answered_with_the_nearest(cndpm):
    outcome = cndpm("reproduce", "tabel1")
    assert outcome.code == 2
    assert "table1" in outcome.err


def test_missing_data_is_reported_with_the_command_that_fetches_it(cndpm, tmp_path):
    outcome = cndpm("reproduce", "fuzzy", "--only", "finetune", "--data-dir", str(tmp_path), *SHORT)
    assert outcome.code == 1
    assert "cndpm data fetch mnist" in outcome.err


def test_an_override_that_fits_only_the_chosen_learner_leaves_its_report(cndpm, mnist_dir):
    override = ("--set", "learner.n_steps=1")  # CN-DPM, in the same table, has no such setting
    chosen = ("--only", "dgr", "--seeds", "1", "--data-dir", str(mnist_dir), "--device", "cpu", "--quiet")
    outcome = cndpm("reproduce", "task-based", *chosen, *override)
    assert outcome.code == 0, outcome.err
    assert "DGR" in (mnist_dir.parent / "runs/paper/task-based/report/tables.md").read_text()


@pytest.mark.slow
def test_missing_runs_are_carried_out_once_and_written_down_as_they_end(tmp_path, mnist_dir):
    overrides = ("learner.memory_size=50",)
    cell = Cell("Reservoir", "Split-MNIST", "split-mnist", "reservoir", {"epochs": 4, "batch_size": 20}, overrides)
    out, name = tmp_path / "out", "split-mnist/reservoir"
    given = {"minutes": 5, "jobs": 2, "set": ["run.max_batches=3"], "device": "cpu", "data_dir": mnist_dir}
    runner = Runner(Namespace(**given, out=out, commit="abc1234"))
    runner.run([Job(MissingRuns(cell, name, (0, 1), 1, 1.0), seed) for seed in (0, 1)])
    lines = [json.loads(line) for line in (out / "paper.jsonl").read_text().splitlines()]
    assert sorted(line["seed"] for line in lines) == [0, 1]
    assert {(line["commit"], line["epochs"], line["n_batches"]) for line in lines} == {("abc1234", 4.0, 3)}
    assert lines[0]["given"] == {"memory_size": "50"}
    assert read_record(out / "runs" / name / "0" / "seed-0").config["scenario"]["batch_size"] == 20


def test_no_run_is_begun_when_a_part_is_over(tmp_path):
    cell = Cell("Reservoir", "Split-MNIST", "split-mnist", "reservoir")
    runner = Runner(Namespace(minutes=0, jobs=1, set=[], device="cpu", data_dir=None, out=tmp_path, commit=None))
    runner.run([Job(MissingRuns(cell, "a", (0,), 1, 1.0), 0)])
    assert (runner.n_done, list(tmp_path.iterdir())) == (0, [])
