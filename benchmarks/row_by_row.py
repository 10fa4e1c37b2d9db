"""Models that answer a row and then learn it, one after the other, with the time that every row takes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.streams import Rows

__all__ = ["MODELS", "LabelBefore", "Neighbours", "follow", "make_model"]

Row = dict[Hashable, float]
_WARMING = 30
"""Rows that another model follows first, so that no row pays for what is loaded once."""


class LabelBefore:
    """Answers with the label that came last."""

    def __init__(self) -> None:
        self._label: int | None = None

    def predict_one(self, x: Row) -> int | None:
        return self._label

    def learn_one(self, x: Row, y: int) -> None:
        self._label = y


class Neighbours:
    """Answers with the label of most of the nearest rows, each weighed by one over its distance, of the latest ones.

    Columns are measured in their deviations over all rows so far.

    Args:
        n_neighbours: Rows that are asked.
        n_kept: Rows that are kept.
    """

    def __init__(self, n_neighbours: int = 5, n_kept: int = 5000) -> None:
        self.n_neighbours, self.n_kept = n_neighbours, n_kept
        self._x: NDArray[np.float64] | None = None
        self._sums: NDArray[np.float64] = np.zeros(0)
        self._y = np.zeros(n_kept, dtype=np.int64)
        self._n = 0

    def predict_one(self, x: Row) -> int | None:
        if self._x is None:
            return None
        n = min(self._n, self.n_kept)
        variances = np.maximum(self._sums[1] / self._n - (self._sums[0] / self._n) ** 2, 1e-12)
        squares = (self._x[:n] - np.fromiter(x.values(), float)) ** 2 @ (1 / variances)
        nearest = np.argpartition(squares, min(self.n_neighbours, n) - 1)[: self.n_neighbours]
        return int(np.bincount(self._y[nearest], 1 / np.sqrt(squares[nearest] + 1e-12)).argmax())

    def learn_one(self, x: Row, y: int) -> None:
        row = np.fromiter(x.values(), float)
        if self._x is None:
            self._x, self._sums = np.zeros((self.n_kept, len(x))), np.zeros((2, len(x)))
        place = self._n % self.n_kept
        self._x[place], self._y[place] = row, y
        self._sums += row, row**2
        self._n += 1


def _ours(seed: int) -> Any:
    from cndpm.river import CNDPMClassifier

    return CNDPMClassifier(seed=seed)


def _river(make: Callable[[Any, int], Any]) -> Callable[[int], Any]:
    def made(seed: int) -> Any:
        import river.ensemble
        import river.forest
        import river.tree

        return make(river, seed)

    return made


MODELS: dict[str, Callable[[int], Any]] = {
    "cndpm": _ours,
    "ARF": _river(lambda river, seed: river.forest.ARFClassifier(seed=seed)),
    "SRP": _river(lambda river, seed: river.ensemble.SRPClassifier(seed=seed, n_models=10)),
    "LB": _river(
        lambda river, seed: river.ensemble.LeveragingBaggingClassifier(river.tree.HoeffdingTreeClassifier(), seed=seed)
    ),
    "HAT": _river(lambda river, seed: river.tree.HoeffdingAdaptiveTreeClassifier(seed=seed)),
    "five nearest": lambda _: Neighbours(),
    "label before": lambda _: LabelBefore(),
}
"""Models with their default settings, by name, for a seed; ten trees in every ensemble."""


def make_model(name: str, seed: int) -> Any:
    """Makes a model that has `predict_one` and `learn_one`.

    Args:
        name: Of :data:`MODELS`.
        seed: Of its random choices.
    """
    return MODELS[name](seed)


def follow(name: str, rows: Rows, seed: int) -> tuple[list[int], dict[str, Any]]:
    """Answers and learns row by row; a model without an answer yet is wrong.

    Args:
        name: Of the model.
        rows: Inputs (n, d) and classes (n,).
        seed: Of the model.

    Returns:
        Answers (n,), and the seconds of all rows with the milliseconds of the longest one: by the clock, and by the
        processor's time, which other processes hardly lengthen; that row's number; experts where it has them.
    """
    named = [dict(enumerate(row)) for row in rows.x.tolist()]
    labels = rows.y.tolist()
    warm = make_model(name, seed)
    for x, label in zip(named[:_WARMING], labels, strict=False):
        warm.predict_one(x)
        warm.learn_one(x, label)
    gc.collect()
    gc.freeze()  # else a collection goes through all that libraries made when they were loaded: 0.1 s within some row
    model, answers = make_model(name, seed), []
    taken = np.zeros((len(named), 2))
    for n, (x, label) in enumerate(zip(named, labels, strict=True)):
        began = time.perf_counter(), time.process_time()
        answer = model.predict_one(x)
        model.learn_one(x, label)
        taken[n] = time.perf_counter() - began[0], time.process_time() - began[1]
        answers.append(int(rows.y.max()) + 1 if answer is None else int(answer))
    gc.unfreeze()
    clock, processor = taken.T
    times = {
        "seconds": float(clock.sum()),
        "processor_seconds": float(processor.sum()),
        "n_rows": len(named),
        "longest_ms": 1000 * float(clock.max()),
        "longest_processor_ms": 1000 * float(processor.max()),
        "longest_row": int(clock.argmax()),
    }
    experts = {"n_experts": model.estimator.n_experts_} if name == "cndpm" else {}
    return answers, times | experts
