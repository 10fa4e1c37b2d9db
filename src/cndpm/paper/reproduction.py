"""Runs an experiment of the paper: what is missing, nothing twice, and prints the paper's values beside ours.

All runs lie under ``out/runs``, named by what determines them, so experiments share them; what an experiment makes of
them goes to ``out/NAME``: ``summary.json`` and what pruning leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack

from cndpm.experiments.config import RunConfig, configure
from cndpm.experiments.record_files import write_json
from cndpm.experiments.sweep import run_sweeps
from cndpm.experiments.workers import SweepOptions
from cndpm.paper.analyses import prune_experts
from cndpm.paper.experiment import Cell, Experiment, find_experiment
from cndpm.validation import ConfigError

__all__ = ["reproduce"]


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
