"""``cndpm reproduce``, end to end, on files of MNIST's format."""

import json
from pathlib import Path

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
    assert "28.41 ± 0.52" in Path("runs/paper/fuzzy/table.md").read_text()
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
