"""Describes runs in plain values: what determines one, what its stream holds, and where and with what it was made."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import torch
from pydantic import BaseModel

import cndpm
from cndpm.experiments.config import RunSettings
from cndpm.experiments.learners import learner_name
from cndpm.learner import Learner
from cndpm.streams import Stream

OWN = "own"
"""Stands in a record for the preset of a run that was made from objects instead of a configuration."""


def describe_run(learner: Learner, stream: Stream, settings: RunSettings, seed: int) -> dict[str, Any]:
    """Returns what determines a run of a learner on a stream, as far as they describe themselves.

    It has the sections of :meth:`cndpm.experiments.config.RunConfig.to_json`, so that reports read both alike. A run is
    resumed only where all of it is the same.
    """
    own = getattr(learner, "settings", None)
    described = {
        "scenario": stream.describe(),
        "learner": learner_name(type(learner)),
        "preset": OWN,
        "settings": own.model_dump(mode="json") if isinstance(own, BaseModel) else {},
        "run": settings.model_dump(mode="json"),
        "seed": seed,
        "device": str(learner.device),
        "input_shape": list(learner.input_shape),
        "n_classes": learner.n_classes,
    }
    return described if stream.seed in (None, seed) else described | {"stream_seed": stream.seed}


def describe_stream(stream: Stream, n_batches: int) -> dict[str, Any]:
    """Returns what readers of a record need to know of the stream: its length, stages and tasks."""
    return {
        "n_batches": n_batches,
        "stage_starts": list(stream.stage_starts),
        "changes": list(stream.changes),
        "stage_tasks": [list(tasks) for tasks in stream.stage_tasks],
        "task_names": [task.name for task in stream.tasks],
        "input_shape": list(stream.input_shape),
        "n_classes": stream.n_classes,
    }


def describe_environment(device: str, command: str | None = None) -> dict[str, Any]:
    """Returns the command, versions, commit, machine, device and time."""
    return {
        "command": command,
        "cndpm": cndpm.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else platform.machine(),
        "n_threads": torch.get_num_threads(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    """Returns the commit of the source tree that the package runs from, with "+" where it was changed; else None."""
    folder = Path(__file__).parent
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return commit + ("+" if _git(folder, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
