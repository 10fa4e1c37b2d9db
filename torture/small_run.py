"""A run that takes a fraction of a second and leaves every file that a run can leave: the victim of most attacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from cndpm.experiments import Monitor, RunSettings, loop, read_checkpoint, read_record, run
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state.tree import detach_tensors
from cndpm.streams import Task, drifting_clusters, stream_from

__all__ = ["N_BATCHES", "be_quick", "outcome", "run_once"]

N_BATCHES = 12
_TIMES = ("seconds", "overhead_seconds")


def be_quick() -> None:
    """Leaves out what takes longest and plays no part: asking git which commit this is."""
    torch.set_num_threads(1)
    vars(loop)["describe_environment"] = lambda device, command=None: {"device": device, "command": command}


def run_once(folder: str | Path, *, seed: int = 0, monitor: Monitor | None = None) -> dict[str, Any]:
    """Runs, or resumes, the small run: a mixture learns drifting clusters, with a checkpoint after every batch.

    Args:
        folder: Where the record goes.
        seed: Of learner and stream.
        monitor: Told of everything that happens.
    """
    draw = drifting_clusters(n_classes=4, period=5, seed=seed)
    x, y = (torch.cat(parts) for parts in zip(*map(draw, range(1000, 1006)), strict=True))
    stream = stream_from(draw, n_classes=4, tasks=(Task("all", (0, 1, 2, 3), x, y),), name="clusters")
    settings = CNDPMSettings.model_validate({"memory_size": 30, "features": "identity"})
    learner = CNDPM(settings, input_shape=stream.input_shape, n_classes=4, seed=seed)
    watched = RunSettings(max_batches=N_BATCHES, checkpoint_seconds=0, evaluations=3, log_points=6)
    return run(learner, stream, folder, settings=watched, resume=True, monitor=monitor)


def outcome(folder: str | Path) -> str:
    """Returns everything that a complete run must have left, times apart, as one text: bits of the learner included."""
    record = read_record(folder)
    tensors: dict[str, torch.Tensor] = {}
    tree = detach_tensors(read_checkpoint(folder)["learner"], tensors)
    bits = {name: tensor.reshape(-1).clone().view(torch.uint8).tolist() for name, tensor in tensors.items()}
    rows = [_timeless(row) for row in record.rows if row["event"] != "resume"]
    told = [record.status, record.problems, _timeless(record.summary or {}), rows, tree, bits]
    return json.dumps(told, sort_keys=True)  # as checksums, which do not depend on the order of names


def _timeless(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _TIMES}
