"""Runs of the one loop become lines of one record."""

import json
from pathlib import Path

from figures.collecting import main

from cndpm.experiments import configure
from cndpm.experiments.loop import run_config


def test_a_line_holds_what_traces_a_figure(tmp_path: Path, capsys):
    few = ["run.max_batches=3", "run.evaluations=0"]
    config = configure("split-digits", learner="slda", seed=4, device="cpu", overrides=few, validation=True)
    summary = run_config(config, tmp_path / "runs" / "seed-4", command="cndpm run split-digits")
    (tmp_path / "runs" / "other").mkdir()
    main([str(tmp_path / "runs"), "--commit", "abc1234", "--out", str(tmp_path / "record.jsonl")])
    (line,) = map(json.loads, (tmp_path / "record.jsonl").read_text().splitlines())
    wanted = {"command": "cndpm run split-digits", "commit": "abc1234", "scenario": "split-digits", "seed": 4}
    assert wanted.items() <= line.items()
    assert (line["learner"], line["preset"], line["validation"]) == ("slda", "default", True)
    assert (line["epochs"], line["stages"]) == (1.0, 5)
    assert line["accuracy"] == summary["accuracy"]
    assert "1 runs" in capsys.readouterr().out
