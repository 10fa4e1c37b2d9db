"""What some experiments do with trained learners beside the table: draw samples, prune experts, collect curves.

An analysis receives the folders of the runs, one list of seeds per cell, and a folder for what it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from cndpm.experiments.config import RunConfig
from cndpm.experiments.evaluation import TestSet, evaluate
from cndpm.experiments.record import CHECKPOINT, RecordError, read_record, write_json
from cndpm.experiments.schedule import evenly_spaced
from cndpm.learner import Learner
from cndpm.state import load_state
from cndpm.streams import Stream

__all__ = ["ANALYSES", "collect_curves", "draw_samples", "load_run", "prune_experts"]

Folders = Sequence[Sequence[Path]]

N_SAMPLES = 50  # as in the paper's figure
SIMILARITY_THRESHOLD = 0.9  # as in the paper's appendix on pruning
N_PRUNING_SAMPLES = 3000  # the paper does not say on how many
_CURVES = ("accuracy", "learned_accuracy", "task_accuracy", "bits_per_dim", "n_experts", "n_parameters")


class Generative(Protocol):
    """A learner that can draw (x, y) from what it has learned."""

    def sample(self, n: int) -> tuple[Tensor, Tensor | None, Tensor]:
        """x, y where there are labels, and the expert of each of n samples."""


class Prunable(Protocol):
    """A learner that can remove experts that another one makes redundant."""

    def prune(self, x: Tensor, y: Tensor | None, *, threshold: float) -> object:
        """Removes experts whose similarity to another on the given data exceeds `threshold`."""


def load_run(folder: str | Path, data_dir: str | Path | None = None) -> tuple[RunConfig, Stream, Learner]:
    """The configuration, the stream and the learner of a run, as its last checkpoint left it."""
    record = read_record(folder)
    checkpoint = Path(folder) / CHECKPOINT
    if not checkpoint.exists():
        raise RecordError(f"{folder} has no checkpoint yet; let the run go on with --resume")
    config = RunConfig.from_json(record.config)
    stream = config.scenario.build(data_dir=data_dir, seed=config.seed, device=config.device)
    learner = config.build_learner(stream)
    learner.load_state_dict(load_state(checkpoint, kind="checkpoint")["learner"])
    return config, stream, learner


def draw_samples(folders: Folders, out: Path, data_dir: str | Path | None) -> dict[str, Any]:
    """Draws samples from the first run; leaves x, y (where labelled) and their experts in ``samples.npz``."""
    _, _, learner = load_run(folders[0][0], data_dir)
    x, y, expert = cast(Generative, learner).sample(N_SAMPLES)
    labels = x.new_empty(0) if y is None else y
    np.savez(out / "samples.npz", x=x.cpu().numpy(), y=labels.cpu().numpy(), expert=expert.cpu().numpy())
    return {"samples": str(out / "samples.npz"), "n_samples": len(x)}


def prune_experts(folders: Folders, out: Path, data_dir: str | Path | None) -> dict[str, Any]:
    """Prunes the trained mixture of every seed; reports experts and accuracy before and after."""
    rows = []
    for folder in folders[0]:
        config, stream, learner = load_run(folder, data_dir)
        test = TestSet(stream.tasks, stream.labelled, config.run.evaluation_batch_size)
        before = {"n_experts": learner.footprint().n_experts, "accuracy": evaluate(learner, test).accuracy}
        x, y = _spread_samples(stream, N_PRUNING_SAMPLES)
        cast(Prunable, learner).prune(x, y, threshold=SIMILARITY_THRESHOLD)
        after = {"n_experts": learner.footprint().n_experts, "accuracy": evaluate(learner, test).accuracy}
        rows.append({"folder": str(folder), "seed": config.seed, "before": before, "after": after})
    analysis = {
        "threshold": SIMILARITY_THRESHOLD,
        "runs": rows,
        "paper": {"before": {"n_experts": 7, "accuracy": 87.07}, "after": {"n_experts": 5, "accuracy": 86.01}},
    }
    write_json(out / "pruning.json", analysis)
    return analysis


def _spread_samples(stream: Stream, n: int) -> tuple[Tensor, Tensor | None]:
    """About n samples from batches spread evenly over the stream."""
    first = next(stream.batches())
    n_batches = stream.n_batches or n
    starts = sorted(evenly_spaced(n_batches, max(1, n // len(first.x))))
    batches = [next(stream.batches(start - 1)) for start in starts]
    labels = [batch.y for batch in batches if batch.y is not None]
    return torch.cat([batch.x for batch in batches]), torch.cat(labels) if labels else None


def collect_curves(folders: Folders, out: Path, data_dir: str | Path | None) -> dict[str, Any]:  # noqa: ARG001
    """Collects how every metric moved along the stream, of every run, into ``curves.json``."""
    curves = []
    for folder in (folder for seeds in folders for folder in seeds):
        record = read_record(folder)
        curve = {name: record.column(name) for name in ("step", *_CURVES)}
        names = {"scenario": record.config["scenario"]["name"], "learner": record.config["learner"]}
        curves.append({**names, "seed": record.config["seed"], **curve})
    write_json(out / "curves.json", {"curves": curves})
    return {"curves": str(out / "curves.json"), "n_curves": len(curves)}


ANALYSES: Mapping[str, Callable[[Folders, Path, str | Path | None], dict[str, Any]]] = {
    "samples": draw_samples,
    "pruning": prune_experts,
    "curves": collect_curves,
}
"""By the name that an experiment gives."""
