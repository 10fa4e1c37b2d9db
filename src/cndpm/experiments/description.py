"""Describes runs in plain values: what determines one, for its record, and what its stream holds, for its readers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

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
