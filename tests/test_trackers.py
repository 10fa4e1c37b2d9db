import json
from pathlib import Path

import pytest
from examples.trackers import MLflow, Wandb

ROW = {"step": 3, "accuracy": 0.5, "tasks": [0.4, 0.6], "name": "x"}


def follow(tracker, *, step):
    tracker.started("digits · cndpm · seed 0", step=step, n_batches=10)
    tracker.evaluated({**ROW, "step": step + 3})


def test_mlflow_has_every_number_and_a_resumed_run_goes_on_there(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # later versions ask for this
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path}/mlruns")
    first = MLflow(tmp_path / "run")
    follow(first, step=0)
    first.close()
    client = MlflowClient()
    name = (tmp_path / "run" / "mlflow.txt").read_text().strip()
    assert client.get_run(name).info.status == "KILLED"
    second = MLflow(tmp_path / "run")
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
    tracker = Wandb(tmp_path / "run")
    follow(tracker, step=0)
    tracker.close()
    name = (tmp_path / "run" / "wandb.txt").read_text().strip()
    (folder,) = (tmp_path / "run" / "wandb").glob("offline-run-*")
    assert folder.name.endswith(name)
    summary = folder / "files" / "wandb-summary.json"
    if summary.exists():
        assert json.loads(summary.read_text())["evaluation/accuracy"] == 0.5
    assert list(Path(folder).glob("*.wandb"))
