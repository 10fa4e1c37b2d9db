"""Figures of one mixture: responsibilities, the memory, the gate, and the experts' similarity and samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.paper.reproduction import SIMILARITY_THRESHOLD
from cndpm.reports.answers_ahead import MAX_ROWS, answering_map, expert_map
from cndpm.reports.curves import X_LABEL
from cndpm.reports.figures import Area, AreaChart, Figure, HeatMap, ImageGrid, Tile
from cndpm.reports.run import Run

_MAX_IMAGE_SIDE = 64


def responsibility_map(run: Run) -> HeatMap | None:
    """Shows the share of each stretch of the stream that every expert learned, or that went to the memory."""
    rows = [row for row in run.record.rows if row["event"] == "progress" and row.get("expert_counts") is not None]
    n_experts = max((len(row["expert_counts"]) for row in rows), default=0)
    if not n_experts or n_experts > MAX_ROWS:
        return None
    counts = np.array([_padded(row["expert_counts"], n_experts) for row in rows])
    memory = np.array([_in_memory(row) for row in rows])
    taken = np.vstack([np.diff(memory, prepend=0), np.diff(counts, axis=0, prepend=0).T]).clip(min=0)
    for i in range(len(rows) - 2, -1, -1):  # rows that waited for others are those that were learned next
        if not taken[:, i].any():
            taken[:, i] = taken[:, i + 1]
    total = taken.sum(axis=0)
    shares = np.divide(100 * taken, total, out=np.zeros_like(taken), where=total > 0)
    return expert_map(
        run,
        shares,
        [row["step"] for row in rows],
        key="responsibilities",
        title="Which expert learned what, when",
        caption="Each column is a stretch of the stream. New samples go to the memory (top row); when it is full, "
        "a new expert is made of them and learns the samples that follow.",
        value_label="share of the samples (%)",
    )


def memory_chart(run: Run) -> AreaChart | None:
    """Shows how many samples the short-term memory holds over the stream, by class."""
    rows = [row for row in run.record.rows if row["event"] == "progress" and "memory_classes" in row]
    if not rows:
        return None
    n_classes = max(len(row["memory_classes"] or ()) for row in rows)
    if n_classes:
        classes = np.array([_padded(row["memory_classes"] or [], n_classes) for row in rows]).T
        present = [c for c in range(n_classes) if classes[c].any()]
        areas = [Area(f"class {c}", classes[c].tolist(), i) for i, c in enumerate(present)]
    else:
        areas = [Area("samples", [_in_memory(row) for row in rows], 0)]
    capacity = run.config["settings"].get("memory_size")
    return AreaChart(
        key="memory",
        title="Samples in the short-term memory",
        caption="Samples that no expert explains are kept here"
        + (f" until there are {capacity} or a few more" if capacity else "")
        + "; each fall to zero is a sleep, in which a new expert is made of them.",
        alt="Samples in the short-term memory by class against batches learned.",
        x_label=X_LABEL,
        y_label="samples in the memory",
        x=[row["step"] for row in rows],
        areas=areas,
        bands=run.stages,
        n_colours=len(areas),
    )


def gate_map(run: Run) -> HeatMap | None:
    """Shows the percentage of every task's test samples that the gate sends to each expert."""
    rows = [row for row in run.record.evaluations if row.get("gate_counts")]
    if not rows:
        return None
    by_task = [(i, counts) for i, counts in enumerate(rows[-1]["gate_counts"]) if counts]
    shares = [[100 * n / max(1, sum(counts)) for n in counts] for _, counts in by_task]
    names = [run.task_names[i] if i < len(run.task_names) else f"task {i + 1}" for i, _ in by_task]
    gating = rows[-1].get("gating_accuracy")
    found = f"{gating:.1f} % of the samples reach an expert of their own task. " if gating is not None else ""
    return HeatMap(
        key="gate",
        title="Experts that the gate chooses",
        caption=found + "Every row is a task, every number the percentage of its test samples that an expert would "
        "answer. A gate that is sure has one bright cell per row.",
        alt="; ".join(
            f"{name}: mostly expert {int(np.argmax(row)) + 1} ({max(row):.0f} %)"
            for name, row in zip(names, shares, strict=True)
        ),
        x_label="chosen expert",
        y_label="true task",
        values=np.round(shares, 1).tolist(),
        rows=names,
        columns=[str(k + 1) for k in range(len(shares[0]))],
        value_label="share of the task's test samples (%)",
        limits=(0, 100),
        written=len(shares[0]) <= 12,
    )


def similarity_map(run: Run) -> HeatMap | None:
    """Shows the cosine similarity of several experts, and says how many pairs pruning would merge."""
    if run.portrait is None or len(run.portrait.similarity) < 2:
        return None
    values = run.portrait.similarity
    names = [str(k + 1) for k in range(len(values))]
    pairs = values[np.triu_indices(len(values), 1)]
    above = int((pairs > SIMILARITY_THRESHOLD).sum())
    return HeatMap(
        key="similarity",
        title="Similarity of the experts",
        caption="Cosine similarity of the experts' log-likelihoods of test samples (appendix D of the paper). Pairs "
        f"above {SIMILARITY_THRESHOLD:g}, which pruning would merge: {above or 'none'}.",
        alt=f"{len(values)} by {len(values)} matrix. Pairs of experts lie between {pairs.min():.3f} and "
        f"{pairs.max():.3f}.",
        x_label="expert",
        y_label="expert",
        values=np.round(values, 3).tolist(),
        rows=names,
        columns=names,
        value_label="cosine similarity",
        limits=(min(0.0, float(values.min())), 1.0),
        written=len(values) <= 12,
    )


def sample_grid(run: Run) -> ImageGrid | None:
    """Shows samples drawn from the mixture (experts chosen by their counts) and from every expert, with labels."""
    portrait = run.portrait
    if portrait is None or not len(portrait.x) or portrait.x.ndim != 4 or portrait.x.shape[-1] > _MAX_IMAGE_SIDE:
        return None
    tiles = [Tile(_pixels(x), "" if label < 0 else str(label)) for x, label in zip(portrait.x, portrait.y, strict=True)]
    mixture = [tile for tile, of in zip(tiles, portrait.from_mixture, strict=True) if of]
    rows = [("mixture" if i == 0 else "", mixture[i : i + 10]) for i in range(0, len(mixture), 10)]
    for k in sorted(set(portrait.expert[~portrait.from_mixture].tolist())):
        own = (portrait.expert == k) & ~portrait.from_mixture
        rows.append((f"expert {k + 1}", [tiles[i] for i in np.flatnonzero(own)]))
    return ImageGrid(
        key="samples",
        title="Samples drawn from the mixture",
        caption="Each image is drawn from an expert's density"
        + ("; the label below it is drawn from the expert's classifier. " if portrait.y.max() >= 0 else ". ")
        + "First from the mixture, where experts are chosen by their number of samples, then expert by expert.",
        alt=f"{len(mixture)} images drawn from the mixture and {len(tiles) - len(mixture)} from its experts, labelled.",
        rows=rows,
    )


ANATOMY: Mapping[str, Callable[[Run], Figure | None]] = {
    "answering": answering_map,
    "responsibilities": responsibility_map,
    "memory": memory_chart,
    "gate": gate_map,
    "similarity": similarity_map,
    "samples": sample_grid,
}
"""The figures of a mixture, by name; None where the record does not allow one."""


def anatomy(run: Run) -> list[Figure]:
    """Returns every figure of a mixture that the record allows."""
    return [figure for make in ANATOMY.values() if (figure := make(run)) is not None]


def _padded(values: list[Any], n: int) -> list[float]:
    return [float(v) for v in values] + [0.0] * (n - len(values))


def _pixels(x: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Converts (channels, height, width) in [0, 1] to (height, width, channels) of bytes."""
    return (255 * x.clip(0, 1)).round().astype(np.uint8).transpose(1, 2, 0)


def _in_memory(row: Mapping[str, Any]) -> float:
    """Returns the samples that no expert has learned; records of other learners tell those kept alone."""
    return float(row["n_in_memory"] if "n_in_memory" in row else row["memory_samples"])
