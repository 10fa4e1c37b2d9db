"""What a run keeps beside its metrics, so that its mixture can be looked at later without data or learner.

Along the stream, in the lines of progress: how much every expert has learned and which classes wait in the memory. At
the end, in ``portrait.npz``: samples drawn from the mixture and from every expert, and the experts' similarity.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experiments.evaluation import TestSet
from cndpm.experiments.record import RecordError
from cndpm.model.expert_mixture import ExpertMixture
from cndpm.streams import Stream

__all__ = [
    "PORTRAIT",
    "Portrait",
    "describe_mixture",
    "describe_stream",
    "load_portrait",
    "save_portrait",
    "take_portrait",
]

PORTRAIT = "portrait.npz"
N_MIXTURE_SAMPLES = 50  # as in the paper's figure
N_EXPERT_SAMPLES = 10
N_SIMILARITY_SAMPLES = 500
_MAX_DRAWN_EXPERTS = 24


@dataclass(frozen=True)
class Portrait:
    """How a mixture of K experts looked when its run ended.

    Attributes:
        x: Drawn inputs (n, *input_shape), float32; none (0, ...) where the experts cannot be drawn from.
        y: Their classes, (n,) int64; -1 where there are none.
        expert: The expert of each, (n,) int64.
        from_mixture: (n,) bool: drawn from the mixture, where experts are chosen by their counts; else one by one.
        similarity: Cosine similarity of the experts' log-likelihoods of test samples, (K, K).
        counts: Samples that each expert has learned, (K,).
    """

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    expert: NDArray[np.int64]
    from_mixture: NDArray[np.bool_]
    similarity: NDArray[np.float64]
    counts: NDArray[np.float64]


def describe_stream(stream: Stream, n_batches: int) -> dict[str, Any]:
    """What readers of the record need to know of the stream: its length, stages and tasks."""
    return {
        "n_batches": n_batches,
        "stage_starts": list(stream.stage_starts),
        "stage_tasks": [list(tasks) for tasks in stream.stage_tasks],
        "task_names": [task.name for task in stream.tasks],
        "input_shape": list(stream.input_shape),
        "n_classes": stream.n_classes,
    }


def describe_mixture(learner: ExpertMixture) -> dict[str, Any]:
    """``expert_counts``: samples learned by each expert; ``memory_classes``: samples in the memory by class.

    A bank may have more to tell, see :meth:`cndpm.experts.bank.Bank.describe`.
    """
    _, y = learner.memory.data() if len(learner.memory) else (None, None)
    classes = None if y is None or y.is_floating_point() else torch.bincount(y).tolist()
    counts = [round(n, 2) for n in learner.counts.tolist()]
    return {"expert_counts": counts, "memory_classes": classes, **learner.bank.describe()}


@torch.no_grad()
def take_portrait(learner: ExpertMixture, test: TestSet, seed: int) -> Portrait | None:
    """The portrait of a mixture; None while it has no expert. The learner's answers do not depend on it."""
    if learner.n_experts == 0:
        return None
    some = test.subsample(N_SIMILARITY_SAMPLES, seed)
    x = torch.cat([task.x for task in some.tasks])
    y = torch.cat([task.y for task in some.tasks]) if test.labelled else None
    similarity = learner.similarity(x, y)
    draws = _draw(learner, seed)
    return Portrait(*draws, similarity.cpu().numpy(), learner.counts.cpu().numpy())


def save_portrait(folder: Path, portrait: Portrait) -> None:
    """Writes ``portrait.npz``, whole or not at all."""
    handle, temporary = tempfile.mkstemp(prefix=f".{PORTRAIT}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **vars(portrait))
        Path(temporary).chmod(0o644)
        Path(temporary).replace(folder / PORTRAIT)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise RecordError(f"cannot write {folder / PORTRAIT}: {error.strerror or error}") from error


def load_portrait(folder: str | Path) -> Portrait | None:
    """The portrait in a record; None where the run left none.

    Raises:
        RecordError: The file is damaged.
    """
    path = Path(folder) / PORTRAIT
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return Portrait(**{name: arrays[name] for name in Portrait.__dataclass_fields__})
    except (BadZipFile, EOFError, KeyError, OSError, ValueError) as error:
        raise RecordError(f"{path} is damaged: {error}") from error


def _draw(learner: ExpertMixture, seed: int) -> tuple[Any, Any, Any, Any]:
    """x, y, expert, from_mixture; empty where the experts' densities cannot be drawn from."""
    try:
        draws = [learner.sample(N_MIXTURE_SAMPLES, seed=seed)]
    except NotImplementedError:
        empty = np.zeros(0, dtype=np.int64)
        return np.zeros((0, *learner.input_shape), dtype=np.float32), empty, empty, empty.astype(bool)
    drawn = range(min(learner.n_experts, _MAX_DRAWN_EXPERTS))
    draws += [learner.sample(N_EXPERT_SAMPLES, seed=seed, expert=k) for k in drawn]
    x = torch.cat([draw[0] for draw in draws]).float().cpu().numpy()
    y = torch.cat([_labels(draw[1], len(draw[0])) for draw in draws]).cpu().numpy()
    expert = torch.cat([draw[2] for draw in draws]).cpu().numpy()
    return x, y, expert, np.arange(len(x)) < N_MIXTURE_SAMPLES


def _labels(y: Tensor | None, n: int) -> Tensor:
    return torch.full((n,), -1) if y is None or y.is_floating_point() else y
