"""A learner and a stream of one's own, as docs/experiments.md has them: run, killed, resumed and reported."""

import json
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

from cndpm.baselines.slda import SLDA
from cndpm.cli import main
from cndpm.experiments import (
    ConfigError,
    RecordError,
    RunSettings,
    configure,
    find_records,
    read_record,
    run,
    run_config,
)
from cndpm.names import load_object
from cndpm.paper import load_run
from cndpm.reports import write_report
from cndpm.streams import drifting_clusters, stream_from
from pausing import kill, paused
from stopping import Stop, StopsAt, without_times

DOCS = Path(__file__).parents[2] / "docs" / "experiments.md"
SHORT = RunSettings(max_batches=60, evaluations=2, log_points=5, checkpoint_seconds=0)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The folder with ``own.py``, as the documentation has it; the class is imported anew for every test."""
    code = next(
        part for part in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL) if "NearestMean" in part
    )
    (tmp_path / "own.py").write_text(code.replace("checkpoint_seconds=1", "checkpoint_seconds=0.02"))
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("own", None)


@pytest.mark.slow
def test_the_documented_run_is_killed_resumed_to_the_same_bits_and_reported(own):
    load_object("own:main")(own / "whole")
    kill(paused(26, "own.py", "killed", folder=own))
    assert read_record(own / "killed").status == "interrupted"
    resumed = subprocess.run([sys.executable, "own.py", "killed"], cwd=own, capture_output=True, text=True)
    out, err = resumed.stdout, resumed.stderr
    assert (resumed.returncode, err) == (0, "")
    whole, again = (read_record(own / name) for name in ("whole", "killed"))
    assert float(out) == whole.summary["accuracy"] > 90
    assert without_times(again.summary) == without_times(whole.summary)
    assert "resume" in {row["event"] for row in again.rows}
    assert again.column("task_accuracy") == whole.column("task_accuracy")
    assert again.config["learner"] == "__main__:NearestMean"
    assert again.config["settings"] == {"scale": 1.0}
    page = write_report([own / "killed"], own / "report").page.read_text()
    assert "drifting clusters" in page and "python own.py killed" in page


def test_ones_own_learner_is_run_by_its_name_on_the_command_line(own, monkeypatch, capfd):
    monkeypatch.chdir(own)
    options = ("--quiet", "--device", "cpu", "--json", "--set", "learner.scale=2", "--set", "run.evaluations=0")
    arguments = ["run", "split-digits", "--learner", "own:NearestMean", *options]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code
    result = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert result["accuracy"] > 80 and result["learner"] == "own:NearestMean"
    (folder,) = find_records("runs")
    record = read_record(folder)
    assert str(folder) == "runs/split-digits-own_NearestMean/seed-0"
    assert record.environment["command"].startswith("cndpm run split-digits --learner own:NearestMean --quiet")
    with pytest.raises(SystemExit):
        main([*arguments, "--resume"])
    assert len(find_records("runs")) == 1
    _, stream, learner = load_run(folder)
    assert learner.settings.scale == 2 and stream.n_batches == 146


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own:NearestMeen", "NearestMean"),
        ("nowhere:X", "PYTHONPATH"),
        ("decimal:Decimal", "subclass of cndpm.learner:Learner"),
    ],
)
def test_a_name_that_leads_to_no_learner_is_refused_before_anything_runs(own, monkeypatch, capfd, name, words):
    monkeypatch.chdir(own)
    with pytest.raises(SystemExit) as ended:
        main(["run", "split-digits", "--learner", name])
    assert ended.value.code == 2
    err = capfd.readouterr().err
    assert words in err and "Traceback" not in err
    assert not Path("runs").exists()


def learner_for(stream, **settings):
    return SLDA(SLDA.Settings(n_features=20, **settings), input_shape=stream.input_shape, n_classes=4)


def clusters(**options):
    return stream_from(drifting_clusters(period=20), n_classes=4, name="clusters", **options)


def test_a_stream_without_test_sets_is_run_resumed_and_reported(tmp_path):
    stream = clusters()
    whole = run(learner_for(stream), stream, tmp_path / "whole", settings=SHORT)
    assert whole["accuracy"] is None and whole["n_batches"] == 60 and whole["n_numbers_kept"] > 0
    stopped = learner_for(stream)
    with pytest.raises(Stop):
        run(stopped, stream, tmp_path / "stopped", settings=SHORT, monitor=StopsAt(33))
    assert stopped.on_progress is None
    resumed = learner_for(stream)
    summary = run(resumed, clusters(), tmp_path / "stopped", settings=SHORT, resume=True)
    assert without_times(summary) == without_times(whole)
    uninterrupted = learner_for(stream)
    for batch, _ in zip(stream.batches(), range(60), strict=False):
        uninterrupted.learn(batch.x, batch.y)
    x = next(stream.batches(5)).x
    assert torch.equal(resumed.predict_log_proba(x), uninterrupted.predict_log_proba(x))
    report = write_report([tmp_path], tmp_path / "report")
    assert not report.content.collection.problems
    assert "clusters" in report.page.read_text()


def test_an_iterator_that_ends_early_ends_the_run_and_resumes_when_made_anew(tmp_path):
    def run_in(folder, **options):
        stream = stream_from((np.full((5, 3), i, float), np.arange(5) % 2) for i in range(40))
        return run(learner_for(stream), stream, folder, settings=SHORT, **options)

    whole = run_in(tmp_path / "whole")
    assert whole["n_batches"] == 40
    assert read_record(tmp_path / "whole").column("step", "progress")[-1] == 40
    with pytest.raises(Stop):
        run_in(tmp_path / "stopped", monitor=StopsAt(9))
    assert without_times(run_in(tmp_path / "stopped", resume=True)) == without_times(whole)


def test_an_endless_stream_without_an_end_is_refused_before_anything_is_written(tmp_path):
    stream = clusters()
    with pytest.raises(ConfigError, match=r"RunSettings\(max_batches=N\)"):
        run(learner_for(stream), stream, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_another_learner_stream_or_seed_is_not_taken_for_the_same_run(tmp_path):
    stream = clusters()
    run(learner_for(stream), stream, tmp_path, settings=SHORT)
    others = {
        "settings.chunk": (learner_for(stream, chunk=7), stream, {}),
        r"scenario\.name": (learner_for(stream), stream_from(drifting_clusters(), n_classes=4), {}),
        "seed": (learner_for(stream), stream, {"seed": 3}),
    }
    for differing, (learner, other, options) in others.items():
        with pytest.raises(RecordError, match=f"differs in .*{differing}"):
            run(learner, other, tmp_path, settings=SHORT, resume=True, **options)


def test_a_learner_and_a_scenario_as_objects_give_the_same_as_their_configuration(tmp_path):
    few = ["learner.n_features=20", "run.evaluations=1"]
    config = configure("split-digits", learner="slda", device="cpu", overrides=few)
    stream = config.scenario.build(seed=0)
    learner = SLDA(SLDA.Settings(n_features=20), input_shape=stream.input_shape, n_classes=stream.n_classes)
    summary = run(learner, stream, tmp_path / "objects", settings=RunSettings(evaluations=1))
    assert without_times(summary) == without_times(run_config(config, tmp_path / "configured"))
    objects, configured = (read_record(tmp_path / name).config for name in ("objects", "configured"))
    facts = {"preset": "own", "input_shape": [1, 8, 8], "n_classes": 10}
    assert objects == configured | facts
    with pytest.raises(RecordError, match="given as objects"):
        load_run(tmp_path / "objects")


def test_what_a_learner_tells_of_itself_is_logged_but_replaces_nothing(tmp_path):
    class Talks(SLDA):
        told = count(1)

        def describe(self):
            return {"mood": next(self.told), "step": "mine", "n_experts": "mine"}

    stream = clusters()
    run(Talks(Talks.Settings(n_features=20), input_shape=(8,), n_classes=4), stream, tmp_path, settings=SHORT)
    progress = [row for row in read_record(tmp_path).rows if row["event"] == "progress"]
    assert [row["mood"] for row in progress] == list(range(1, len(progress) + 1))
    assert progress[-1]["step"] == 60 and progress[-1]["n_experts"] == 1
