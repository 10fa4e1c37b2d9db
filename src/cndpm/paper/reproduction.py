"""Runs an experiment of the paper: what is missing, nothing twice, and prints the paper's values beside ours.

All runs lie under ``out/runs``, named by what determines them, so experiments share them; what an experiment makes of
them goes to ``out/NAME``: ``summary.json`` and what pruning leaves, whose trained learners are made again here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor

from cndpm.experiments.checkpoint_file import read_checkpoint, restore_learner
from cndpm.experiments.config import RunConfig, configure
from cndpm.experiments.description import OWN
from cndpm.experiments.evaluation import TestSet, evaluate
from cndpm.experiments.record import CHECKPOINT, RecordError, read_record
from cndpm.experiments.record_files import write_json
from cndpm.experiments.schedule import evenly_spaced
from cndpm.experiments.sweep import run_sweeps
from cndpm.experiments.workers import SweepOptions
from cndpm.learner import Learner
from cndpm.paper.experiment import Cell, Experiment, find_experiment
from cndpm.streams import Stream
from cndpm.validation import ConfigError

__all__ = ["load_run", "reproduce"]


def reproduce(
    experiment: str | Experiment,
    out: str | Path = "runs/paper",
    *,
    n_seeds: int | None = None,
    seed: int = 0,
    preset: str = "paper",
    device: str = "auto",
    overrides: Sequence[str] = (),
    only: Sequence[str] = (),
    **options: Unpack[SweepOptions],
) -> dict[str, Any]:
    """Runs what an experiment lacks; returns for each cell its result over seeds beside what was published.

    Args:
        experiment: Name of one of the paper's, or one of one's own.
        out: The folder of all reproductions.
        n_seeds: Runs per cell; None: as many as the paper.
        seed: The first seed.
        preset: The settings to start from.
        device: Where to run.
        overrides: For all cells, as for ``--set``.
        only: Keeps the cells whose learner or scenario is named here.
        **options: As for :func:`~cndpm.experiments.sweep.run_seeds`; what is complete is never run again.
    """
    experiment = find_experiment(experiment) if isinstance(experiment, str) else experiment
    cells = select_cells(experiment, only)
    configs = [cell_config(cell, preset, device, overrides) for cell in cells]  # all, before the first run
    seeds = range(seed, seed + (n_seeds or experiment.n_seeds))
    out = Path(out)
    folders = [out / "runs" / cell_folder(cell, preset, overrides) for cell in cells]
    by_folder = dict(zip(folders, configs, strict=True))  # cells that are the same runs share a folder
    options["resume"] = True
    results = run_sweeps(by_folder, seeds, **options)
    result_of = dict(zip(by_folder, results, strict=True))
    summary: dict[str, Any] = {
        "experiment": experiment.name,
        "title": experiment.title,
        "metrics": experiment.metrics,
        "cells": [_beside_published(cell, result_of[folder]) for cell, folder in zip(cells, folders, strict=True)],
    }
    write_json(out / experiment.name / "summary.json", summary, sealed=False)
    if experiment.analysis == "pruning":
        runs = [folders[0] / f"seed-{i}" for i in seeds]
        summary["analysis"] = prune_experts(runs, out / experiment.name, options.get("data_dir"))
        write_json(out / experiment.name / "summary.json", summary, sealed=False)
    return summary


def _beside_published(cell: Cell, result: dict[str, Any]) -> dict[str, Any]:
    published = {metric: asdict(value) for metric, value in cell.published.items()}
    return {"label": cell.label, "column": cell.column, **result, "published": published}


def select_cells(experiment: Experiment, only: Sequence[str]) -> tuple[Cell, ...]:
    """Returns the cells whose learner or scenario is in `only`; all where it is empty."""
    cells = tuple(cell for cell in experiment.cells if not only or {cell.learner, cell.scenario} & set(only))
    if not cells:
        known = sorted({name for cell in experiment.cells for name in (cell.learner, cell.scenario)})
        raise ConfigError(f"{experiment.name} has no cell of {', '.join(only)}; it has {', '.join(known)}")
    return cells


def cell_config(cell: Cell, preset: str, device: str, overrides: Sequence[str] = ()) -> RunConfig:
    """Makes the configuration of a cell, for any seed."""
    return configure(
        cell.scenario,
        learner=cell.learner,
        preset=preset,
        device=device,
        overrides=[*cell.overrides, *overrides],
        **cell.options,
    )


def cell_folder(cell: Cell, preset: str, overrides: Sequence[str] = ()) -> Path:
    """Returns a folder named by what determines the cell's runs: ``split-mnist/cndpm-paper-epochs=10-log_alpha=80``."""
    options = [f"{name}={value}" for name, value in sorted(cell.options.items())]
    changes = [text.partition(".")[2] for text in (*cell.overrides, *overrides)]
    return Path(cell.scenario) / "-".join([cell.learner, preset, *options, *changes]).replace("/", "_")


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
