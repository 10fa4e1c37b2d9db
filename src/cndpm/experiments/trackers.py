"""Monitors that pass the numbers of a run on to a service for tracking experiments: MLflow, Weights & Biases.

Neither package is imported before its monitor is made, and nothing is sent anywhere but where the service is told to by
its own settings (``MLFLOW_TRACKING_URI``; ``WANDB_MODE=offline``).
"""

from __future__ import annotations

import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cndpm.errors import CNDPMError
from cndpm.experiments.monitor import Monitor, Row, TensorBoardMonitor, numbers_of
from cndpm.extras import require_extra
from cndpm.names import UnknownNameError
from cndpm.storage import replace_file

__all__ = ["TRACKERS", "MLflowMonitor", "TrackerError", "WandbMonitor", "make_tracker"]


class TrackerError(CNDPMError, RuntimeError):
    """A service for tracking experiments does not take the numbers of a run; the message tells what to set."""


class _NumberMonitor(Monitor, ABC):
    """Base of monitors that pass every number on."""

    def progressed(self, row: Row) -> None:
        """Logs the row's numbers."""
        self._log("progress", row)

    def evaluated(self, row: Row) -> None:
        """Logs the row's numbers, those of single tasks included."""
        self._log("evaluation", row)

    def windowed(self, row: Row) -> None:
        """Logs the row's numbers."""
        self._log("window", row)

    @abstractmethod
    def _log(self, group: str, row: Row) -> None:
        """Passes the numbers of a row on, under names that begin with the group."""


class MLflowMonitor(_NumberMonitor):
    """Logs every number of a run to MLflow, in an experiment called cndpm.

    A run that is resumed goes on in the same run of MLflow, whose name is kept in the file ``mlflow.txt``.

    Args:
        folder: Of the run's record.

    Raises:
        MissingExtraError: MLflow is not installed.

    Example:
        >>> from cndpm.extras import is_installed
        >>> monitor = MLflowMonitor("runs/mine/seed-0") if is_installed("mlflow") else Monitor()
    """

    def __init__(self, folder: str | Path) -> None:
        require_extra("mlflow", purpose="--track mlflow")
        self._file = Path(folder) / "mlflow.txt"
        self._client: Any = None
        self._run = ""

    def started(self, title: str, *, step: int, n_batches: int) -> None:
        """Begins a run, or goes on with the one that was begun.

        Args:
            title: Names scenario, learner and seed.
            step: Batches learned so far.
            n_batches: Batches of the whole run.
        """
        with _refused("MLflow", _MLFLOW_REMEDY):
            self._begin(title, step, n_batches)

    def _begin(self, title: str, step: int, n_batches: int) -> None:
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient()
        if step and self._file.exists():
            self._run = self._file.read_text().strip()
            self._client.update_run(self._run, status="RUNNING")
            return
        found = self._client.get_experiment_by_name("cndpm")
        experiment = found.experiment_id if found else self._client.create_experiment("cndpm")
        self._run = self._client.create_run(experiment, run_name=title).info.run_id
        self._client.log_param(self._run, "n_batches", n_batches)
        _keep(self._file, self._run)

    def finished(self, summary: Row) -> None:
        """Marks the run as complete."""
        self._client.set_terminated(self._run)
        self._run = ""

    def close(self) -> None:
        """Marks a run that was not completed as broken off."""
        if self._run:
            self._client.set_terminated(self._run, status="KILLED")

    def _log(self, group: str, row: Row) -> None:
        for name, number in numbers_of(group, row):
            self._client.log_metric(self._run, name, number, step=row["step"])


class WandbMonitor(_NumberMonitor):
    """Logs every number of a run to Weights & Biases, in a project called cndpm.

    A run that is resumed goes on in the same run of the service, whose name is kept in the file ``wandb.txt``.

    Args:
        folder: Of the run's record.

    Raises:
        MissingExtraError: The package wandb is not installed.

    Example:
        >>> from cndpm.extras import is_installed
        >>> monitor = WandbMonitor("runs/mine/seed-0") if is_installed("wandb") else Monitor()
    """

    def __init__(self, folder: str | Path) -> None:
        require_extra("wandb", purpose="--track wandb")
        self._folder, self._file = Path(folder), Path(folder) / "wandb.txt"
        self._run: Any = None

    def started(self, title: str, *, step: int, n_batches: int) -> None:
        """Begins a run, or goes on with the one that was begun.

        Args:
            title: Names scenario, learner and seed.
            step: Batches learned so far.
            n_batches: Batches of the whole run.
        """
        import wandb

        is_begun = bool(step) and self._file.exists()
        name = self._file.read_text().strip() if is_begun else uuid.uuid4().hex[:12]
        project = os.environ.get("WANDB_PROJECT", "cndpm")
        given = {"id": name, "resume": "allow", "name": title, "config": {"n_batches": n_batches}}
        self._folder.mkdir(parents=True, exist_ok=True)
        with _refused("Weights & Biases", _WANDB_REMEDY):
            self._run = wandb.init(project=project, dir=str(self._folder), reinit="create_new", **given)
        _keep(self._file, name)

    def close(self) -> None:
        """Sees everything to where it goes."""
        if self._run is not None:
            self._run.finish()

    def _log(self, group: str, row: Row) -> None:
        self._run.log({"step": row["step"], **dict(numbers_of(group, row))})


_MLFLOW_REMEDY = (
    "Name a server in MLFLOW_TRACKING_URI; or, for files on this machine, `pip install mlflow` (cndpm[mlflow] brings "
    "the smaller mlflow-skinny) and set MLFLOW_TRACKING_URI=sqlite:///mlflow.db"
)
_WANDB_REMEDY = "Run `wandb login`, or set WANDB_MODE=offline to keep the numbers on this machine"


@contextmanager
def _refused(service: str, remedy: str) -> Iterator[None]:
    """Names the service and the remedy where it fails to begin: each has its own errors, and shows pages of them."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())
        raise TrackerError(f"{service} did not begin a run: {reason[:300]} {remedy}.") from error


def _keep(file: Path, name: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, [f"{name}\n".encode()])


def _tensorboard(folder: Path) -> Monitor:
    return TensorBoardMonitor(folder / "tensorboard")


TRACKERS: Mapping[str, Callable[[Path], Monitor]] = {
    "mlflow": MLflowMonitor,
    "tensorboard": _tensorboard,
    "wandb": WandbMonitor,
}
"""Monitors by the name of the service, each made of a run's folder."""


def make_tracker(name: str, folder: Path) -> Monitor:
    """Returns the monitor of a service.

    Args:
        name: One of :data:`TRACKERS`.
        folder: Of the run's record.

    Raises:
        UnknownNameError: There is no such service.
    """
    if name not in TRACKERS:
        raise UnknownNameError("tracker", name, TRACKERS)
    return TRACKERS[name](folder)
