"""Figures of prequential runs: how samples were answered before they were learned, and by which expert."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.reports.curves import X_LABEL, faint_words, group_lines, line_ends, one_panel, values_of
from cndpm.reports.figures import HeatMap, LineChart
from cndpm.reports.groups import Group
from cndpm.reports.run import Run

MAX_ROWS = 60
_CHANGES = 5  # more would make a caption too long

_SCORES = {
    "accuracy": ("Accuracy before learning", "accuracy of a window (%)"),
    "absolute_error": ("Error before learning", "mean absolute error of a window"),
    "bits_per_dim": ("Bits per dimension before learning", "bits per dimension of a window"),
}
"""What windows may hold, in the order of preference: title and axis."""


def prequential_chart(groups: Sequence[Group]) -> LineChart | None:
    """Shows the answers to samples that had not been learned yet, window by window; None where none were asked for."""
    found = {name for group in groups for run in group.runs for row in windows(run) for name in _SCORES if name in row}
    score = next((name for name in _SCORES if name in found), None)
    if score is None:
        return None
    lines = group_lines(groups, lambda run: values_of(windows(run), score))
    title, label = _SCORES[score]
    over = recovery_words(groups)
    return one_panel(
        groups,
        lines,
        key="prequential",
        title=title,
        caption="Every sample is answered before it is learned; a point is the mean of a window. "
        + faint_words(lines)
        + "Where the shading begins or ends the stream changes, which learners are not told."
        + (f" {over}" if over else ""),
        alt=f"{title}, window by window, against batches learned. {line_ends(lines)} {over}",
        y_label=label,
        y_range=(0, 100) if score == "accuracy" else None,
    )


def recovery_words(groups: Sequence[Group]) -> str:
    """Says after how many samples each group's first complete seed was over each change; empty where none is known."""
    found = {group.label: rows for group in groups if (rows := _recovery(group))}
    if not found:
        return ""
    changes = [f"{row['change']:,}" for row in next(iter(found.values()))]
    after = "; ".join(f"{label} {', '.join(map(_samples, rows))}" for label, rows in found.items())
    return f"Samples until 95 % of the former level was regained after {', '.join(changes)}: {after}."


def answering_map(run: Run) -> HeatMap | None:
    """Shows who answered, stretch by stretch: rules and recent models where pools answer, else the experts."""
    told = [row for row in run.record.rows if row["event"] == "progress" and row.get("answers")]
    if told:
        names = list(told[0]["answers"])
        return share_map(
            run,
            np.array([[100 * row["answers"].get(name, 0) for row in told] for name in names]),
            [row["step"] for row in told],
            names,
            key="answering",
            title="Who answered, when",
            caption="How much each had to say at the end of every stretch: rules that forget nothing, models of recent "
            "samples, trees grown on the rows kept, the nearest of these. Where a rule changes, recent models take "
            "over; one that returns is known.",
            value_label="share of the answer (%)",
        )
    rows = [row for row in windows(run) if row.get("experts") is not None]
    n_experts = max((len(row["experts"]) for row in rows), default=0)
    if not n_experts or n_experts > MAX_ROWS:
        return None
    shares = np.zeros((n_experts + 1, len(rows)))
    for j, row in enumerate(rows):
        shares[1 : 1 + len(row["experts"]), j] = row["experts"]
        shares[0, j] = row["n_samples"] - sum(row["experts"])
    shares = 100 * shares / np.maximum(1, shares.sum(axis=0))
    return expert_map(
        run,
        shares,
        [row["step"] for row in rows],
        key="answering",
        title="Which expert answered, when",
        caption="Each column is a window of the stream. An answer is a mixture of all experts; counted is the one with "
        "the largest share in it. Before there is an expert the memory answers (top row).",
        value_label="share of the window (%)",
    )


def expert_map(run: Run, shares: NDArray[np.float64], steps: Sequence[int], **words: Any) -> HeatMap:
    """Shows the shares (%) of the memory and of every expert, (1 + n_experts, n), in stretches that end at `steps`."""
    return share_map(run, shares, steps, ["memory", *(f"expert {k}" for k in range(1, len(shares)))], **words)


def share_map(
    run: Run, shares: NDArray[np.float64], steps: Sequence[int], names: Sequence[str], **words: Any
) -> HeatMap:
    """Shows shares (%), (n_names, n), in stretches that end at `steps`; figures of :class:`HeatMap` by name."""
    means = ", ".join(f"{name} {value:.0f} %" for name, value in zip(names, shares.mean(axis=1), strict=True))
    edges = [band.start for band in run.stages if band.start < steps[-1]]
    return HeatMap(
        **words,
        alt=f"Heat map of shares against batches learned. Mean shares: {means}.",
        x_label=X_LABEL,
        y_label="",
        values=np.round(shares, 1).tolist(),
        rows=list(names),
        columns=[f"{a + 1}–{b}" for a, b in pairwise([0, *steps])],
        limits=(0, 100),
        ticks=[int(np.searchsorted(steps, edge, side="right")) for edge in edges],
    )


def windows(run: Run) -> list[dict[str, Any]]:
    """Returns the lines of a record that score windows of answers."""
    return [row for row in run.record.rows if row["event"] == "window"]


def _recovery(group: Group) -> list[dict[str, Any]]:
    """Returns the first changes of the first complete seed; of many, five."""
    for run in group.complete:
        rows: list[dict[str, Any]] = (run.record.summary or {}).get("prequential", {}).get("recovery") or []
        return rows[:_CHANGES]
    return []


def _samples(row: dict[str, Any]) -> str:
    return "never" if row["samples"] is None else f"{row['samples']:,}"
