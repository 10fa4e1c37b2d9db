import json
from pathlib import Path

import pytest

from cndpm.experiments.trackers import _WANDB_REMEDY, TrackerError, _refused, make_tracker
from cndpm.extras import MissingExtraError
from cndpm.names import UnknownNameError

ROW = {"step": 3, "accuracy": 0.5, "tasks": [0.4, 0.6], "name": "x"}


def test_a_service_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean mlflow"):
        make_tracker("mlfow", tmp_path)


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_service_that_is_not_installed_is_said_with_the_remedy(name, tmp_path, monkeypatch):
    monkeypatch.setattr("cndpm.extras.find_spec", lambda module: None)  # whether or not it is
    with pytest.raises(MissingExtraError, match=rf"pip install 'cndpm\[{name}\]'"):
        make_tracker(name, tmp_path)


def follow(tracker, *, step):
    tracker.started("digits · cndpm · seed 0", step=step, n_batches=10)
    tracker.evaluated({**ROW, "step": step + 3})


def test_mlflow_has_every_number_and_a_resumed_run_goes_on_there(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # later versions ask for this
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path}/mlruns")
    first = make_tracker("mlflow", tmp_path / "run")
    follow(first, step=0)
    first.close()
    client = MlflowClient()
    name = (tmp_path / "run" / "mlflow.txt").read_text().strip()
    assert client.get_run(name).info.status == "KILLED"
    second = make_tracker("mlflow", tmp_path / "run")
    follow(second, step=3)
    second.finished({})
    second.close()
    run = client.get_run(name)
    assert run.info.status == "FINISHED" and run.data.metrics["evaluation/tasks/1"] == 0.6
    assert [one.step for one in client.get_metric_history(name, "evaluation/accuracy")] == [3, 6]


def test_wandb_keeps_a_run_offline_where_it_is_told_to(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    tracker = make_tracker("wandb", tmp_path / "run")
    follow(tracker, step=0)
    tracker.close()
    name = (tmp_path / "run" / "wandb.txt").read_text().strip()
    (folder,) = (tmp_path / "run" / "wandb").glob("offline-run-*")
    assert folder.name.endswith(name)
    summary = folder / "files" / "wandb-summary.json"
    if summary.exists():
        assert json.loads(summary.read_text())["evaluation/accuracy"] == 0.5
    assert list(Path(folder).glob("*.wandb"))


def test_mlflow_without_a_place_for_its_numbers_is_answered_with_the_remedy(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere://at-all")
    with pytest.raises(TrackerError, match=r"MLflow did not begin a run: .*MLFLOW_TRACKING_URI"):
        follow(make_tracker("mlflow", tmp_path / "run"), step=0)
    assert not (tmp_path / "run").exists()


def test_what_a_service_says_is_told_in_a_line_with_the_remedy():
    said = "No API key configured.\n\n  Use `wandb login`" + " and so on" * 100
    with pytest.raises(TrackerError) as refused, _refused("Weights & Biases", _WANDB_REMEDY):
        raise RuntimeError(said)
    text = str(refused.value)
    assert text.startswith("Weights & Biases did not begin a run: No API key configured. Use `wandb login`")
    assert text.endswith("set WANDB_MODE=offline to keep the numbers on this machine.") and len(text) < 500
