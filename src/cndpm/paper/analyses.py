"""Takes up trained learners: makes the one of a run again, and prunes the experts of several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cndpm.experiments.checkpoint_file import read_checkpoint, restore_learner
from cndpm.experiments.config import RunConfig
from cndpm.experiments.description import OWN
from cndpm.experiments.evaluation import TestSet, evaluate
from cndpm.experiments.record import CHECKPOINT, RecordError, read_record
from cndpm.experiments.record_files import write_json
from cndpm.experiments.schedule import evenly_spaced
from cndpm.learner import Learner
from cndpm.streams import Stream
from cndpm.validation import ConfigError

__all__ = ["load_run"]

SIMILARITY_THRESHOLD = 0.9  # as in the paper's appendix on pruning
N_PRUNING_SAMPLES = 3000  # the paper does not say on how many


def load_run(folder: str | Path, data_dir: str | Path | None = None) -> tuple[RunConfig, Stream, Learner]:
    """Makes the configuration, the stream and the learner of a run again, as its last checkpoint left them.

    Args:
        folder: The record of a configured run.
        data_dir: Where datasets lie.

    Raises:
        RecordError: The run has no checkpoint yet, or was made from objects that no configuration describes.
    """
    record = read_record(folder)
    checkpoint = Path(folder) / CHECKPOINT
    if record.config["preset"] == OWN:
        raise RecordError(
            f"{folder} holds a run of a learner and a stream that were given as objects, which no configuration "
            "makes again. Make the learner as it was; its state is cndpm.experiments.read_checkpoint(FOLDER)['learner']"
        )
    if not checkpoint.exists():
        raise RecordError(f"{folder} has no checkpoint yet; let the run go on with --resume")
    config = RunConfig.from_json(record.config)
    stream = config.scenario.build(data_dir=data_dir, seed=config.seed, device=config.device)
    learner = config.build_learner(stream)
    restore_learner(learner, read_checkpoint(folder).get("learner", {}), checkpoint)
    return config, stream, learner


def prune_experts(folders: Sequence[Path], out: Path, data_dir: str | Path | None) -> dict[str, Any]:
    """Prunes the trained mixture of every seed; leaves experts and accuracy before and after in ``pruning.json``."""
    rows = []
    for folder in folders:
        config, stream, learner = load_run(folder, data_dir)
        test = TestSet(stream.tasks, stream.labelled, config.run.evaluation_batch_size)
        before = {"n_experts": learner.footprint().n_experts, "accuracy": evaluate(learner, test).accuracy}
        x, y = _spread_samples(stream, N_PRUNING_SAMPLES)
        _prune(learner, x, y)
        after = {"n_experts": learner.footprint().n_experts, "accuracy": evaluate(learner, test).accuracy}
        rows.append({"folder": str(folder), "seed": config.seed, "before": before, "after": after})
    analysis = {
        "threshold": SIMILARITY_THRESHOLD,
        "runs": rows,
        "paper": {"before": {"n_experts": 7, "accuracy": 87.07}, "after": {"n_experts": 5, "accuracy": 86.01}},
    }
    write_json(out / "pruning.json", analysis, sealed=False)
    return analysis


def _prune(learner: Learner, x: Tensor, y: Tensor | None) -> None:
    """Removes experts that others make redundant on given samples, (n, *input_shape) and (n,)."""
    prune = getattr(learner, "prune", None)
    if prune is None:
        raise ConfigError(f"{type(learner).__name__} cannot prune its experts; name a learner that can")
    prune(x, y, threshold=SIMILARITY_THRESHOLD)


def _spread_samples(stream: Stream, n: int) -> tuple[Tensor, Tensor | None]:
    """Collects about n samples from batches spread evenly over the stream."""
    first = next(stream.batches())
    n_batches = stream.n_batches or n
    starts = sorted(evenly_spaced(n_batches, max(1, n // len(first.x))))
    batches = [next(stream.batches(start - 1)) for start in starts]
    labels = [batch.y for batch in batches if batch.y is not None]
    return torch.cat([batch.x for batch in batches]), torch.cat(labels) if labels else None
