"""Monitors that pass the numbers of a run on to TensorBoard, MLflow and Weights & Biases: copy the one you need.

    cndpm run split-digits --monitor examples.trackers:TensorBoard   # pip install tensorboard
    cndpm run split-digits --monitor examples.trackers:MLflow     # pip install mlflow; MLFLOW_TRACKING_URI
    cndpm run split-digits --monitor examples.trackers:Wandb      # pip install wandb; WANDB_MODE=offline keeps it here

A run that is resumed goes on in the same run of the service, whose name is kept in the record's folder.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cndpm.experiments.monitor import Monitor, Row


class Tracker(Monitor, ABC):
    """Passes rows of the log on, each with its group: "progress", "evaluation" or "window"."""

    @abstractmethod
    def log(self, group: str, row: Row) -> None:
        """Passes the numbers of a row on."""

    def progressed(self, row: Row) -> None:
        self.log("progress", row)

    def evaluated(self, row: Row) -> None:
        self.log("evaluation", row)

    def windowed(self, row: Row) -> None:
        self.log("window", row)


def numbers_of(group: str, row: Row) -> Iterator[tuple[str, float]]:
    """Yields the numbers of a row of the log by name, those of lists one by one; its step is left out.

    >>> dict(numbers_of("evaluation", {"step": 3, "accuracy": 0.5, "tasks": [0.4, 0.6], "name": "x"}))
    {'evaluation/accuracy': 0.5, 'evaluation/tasks/0': 0.4, 'evaluation/tasks/1': 0.6}
    """
    for name, value in row.items():
        values = {f"{name}/{i}": v for i, v in enumerate(value)} if isinstance(value, list) else {name: value}
        for label, number in values.items():
            if isinstance(number, int | float) and not isinstance(number, bool) and name != "step":
                yield f"{group}/{label}", number


class TensorBoard(Tracker):
    """Writes every number of a run as a scalar, to a folder in that of its record."""

    _writer: Any = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tensorboard"

    def started(self, title: str, *, step: int, n_batches: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._folder), purge_step=step + 1)  # hides what an interrupted run wrote

    def log(self, group: str, row: Row) -> None:
        for name, number in numbers_of(group, row):
            self._writer.add_scalar(name, number, row["step"])

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class MLflow(Tracker):
    """Logs every number of a run to MLflow, in an experiment called cndpm."""

    def __init__(self, folder: Path) -> None:
        from mlflow.tracking import MlflowClient

        self._client, self._file, self._run = MlflowClient(), folder / "mlflow.txt", ""

    def started(self, title: str, *, step: int, n_batches: int) -> None:
        if step and self._file.exists():
            self._run = self._file.read_text()
            self._client.update_run(self._run, status="RUNNING")
            return
        found = self._client.get_experiment_by_name("cndpm")
        experiment = found.experiment_id if found else self._client.create_experiment("cndpm")
        self._run = self._client.create_run(experiment, run_name=title).info.run_id
        self._client.log_param(self._run, "n_batches", n_batches)
        _keep(self._file, self._run)

    def log(self, group: str, row: Row) -> None:
        for name, number in numbers_of(group, row):
            self._client.log_metric(self._run, name, number, step=row["step"])

    def finished(self, summary: Row) -> None:
        self._client.set_terminated(self._run)
        self._run = ""

    def close(self) -> None:
        if self._run:
            self._client.set_terminated(self._run, status="KILLED")


class Wandb(Tracker):
    """Logs every number of a run to Weights & Biases, in a project called cndpm."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._file, self._run = folder, folder / "wandb.txt", None

    _run: Any

    def started(self, title: str, *, step: int, n_batches: int) -> None:
        import wandb

        name = self._file.read_text() if step and self._file.exists() else uuid.uuid4().hex[:12]
        _keep(self._file, name)
        config = {"n_batches": n_batches}
        self._run = wandb.init(
            project="cndpm", dir=str(self._folder), id=name, resume="allow", name=title, config=config
        )

    def log(self, group: str, row: Row) -> None:
        self._run.log({"step": row["step"], **dict(numbers_of(group, row))})

    def close(self) -> None:
        if self._run is not None:
            self._run.finish()


def _keep(file: Path, name: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(name)
