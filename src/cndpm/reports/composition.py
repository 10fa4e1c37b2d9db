"""Shares of the tasks over the stream, computed from the scenario without data.

A stage's share of a task is its weight; without weights it is taken to be proportional to the number of classes, which
is exact where classes are of equal size. With blurred boundaries the shares are convolved with the distribution of the
distances by which samples move.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.reports.curves import X_LABEL
from cndpm.reports.figures import Area, AreaChart
from cndpm.reports.run import Run

_POINTS = 240


def composition_chart(run: Run) -> AreaChart | None:
    """Shows the shares of the tasks over the stream; None where the record does not describe the stages."""
    made = composition(run)
    if made is None:
        return None
    x, shares = made
    names = run.task_names
    return AreaChart(
        key="composition",
        title="Tasks in the stream",
        caption="The share of every task in the stream, as the scenario prescribes it. The learner sees samples only, "
        "never the task.",
        alt="Shares of the tasks against batches: " + ", ".join(f"{band.label}" for band in run.stages) + ".",
        x_label=X_LABEL,
        y_label="share of the stream (%)",
        x=x.tolist(),
        areas=[Area(name, (100 * shares[i]).tolist(), i) for i, name in enumerate(names)],
        n_colours=len(names),
    )


def composition(run: Run) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Returns batches (n,) and the share of every task at them, (n_tasks, n); each column sums to 1."""
    recipe, bands, names = run.config["scenario"], run.stages, run.task_names
    stages = [_stage_shares(stage, names) for stage in recipe.get("stages", ())]
    if recipe.get("iid"):
        # One stage of the stream stands for all of the recipe.
        shares = [np.mean(stages, axis=0)] if stages else []
    else:
        shares = stages[: len(bands)]
    if not bands or len(shares) != len(bands) or any(share.sum() == 0 for share in shares):
        return None
    edges = [band.start for band in bands]
    blur = recipe.get("blur")
    points = _POINTS if blur else 2  # without a blur nothing changes but at the edges
    x = np.unique(np.concatenate([np.linspace(0, bands[-1].end, points), edges[1:], np.array(edges[1:]) - 1e-3]))
    of_stage = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(bands) - 1)
    at = np.stack([share / share.sum() for share in shares], axis=1)[:, of_stage]
    return (x, _blurred(x, at, blur, len(bands))) if blur else (x, at)


def _stage_shares(stage: dict[str, Any], names: list[str]) -> NDArray[np.float64]:
    shares = np.zeros(len(names))
    for subset in stage.get("subsets", ()):
        name = _task_name(subset)
        if name in names:
            shares[names.index(name)] += subset.get("weight") or len(subset.get("classes") or "x")
    return shares


def _task_name(subset: dict[str, Any]) -> str:
    from cndpm.streams.scenario import Subset

    return Subset.model_validate(subset).task_name


def _blurred(x: NDArray[np.float64], shares: NDArray[np.float64], blur: dict[str, Any], n_stages: int) -> Any:
    width = blur["width"] * x[-1] / n_stages
    distance = np.abs(x[:, None] - x[None, :])
    if blur.get("kind") == "gaussian":
        kernel = np.exp(-0.5 * (distance / width) ** 2)
    else:
        kernel = (distance <= width / 2).astype(float)
    kernel *= np.gradient(x)[None, :]
    return shares @ (kernel / kernel.sum(axis=1, keepdims=True)).T
