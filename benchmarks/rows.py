"""The cost of a stream that comes row by row: predict, then learn, through scikit-learn's face and through river's.

    python -m benchmarks.rows

Ten features, two classes, 3,000 rows. First river's `progressive_val_score` (`predict_one`, `learn_one`) with rows
learned one by one and in batches, beside its adaptive random forest and the estimator in batches of ten, the sides
taking turns; then the estimators, one with its experts alone, and the other models for river by themselves.
Milliseconds are medians over stretches of 100 rows from row 600 on, when there are experts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor

_N, _BEGIN, _STRETCH = 3000, 600, 100
_FOREST, _TENS = "forest.ARFClassifier()", "the estimator, batches of ten"
Floats = NDArray[np.float64]


def rows(n: int = _N, n_features: int = 10) -> tuple[Floats, NDArray[np.int64]]:
    """Returns rows of two classes that overlap, and their classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, n_features)) + 1.5 * y[:, None] * (np.arange(n_features) < 3), y


def milliseconds(step: Callable[[int], object], batch_size: int) -> float:
    """Returns the median cost of a row, over stretches of rows, where a step handles a batch that begins at a row."""
    taken = []
    for first in range(0, _N, _STRETCH):
        began = time.perf_counter()
        for start in range(first, first + _STRETCH, batch_size):
            step(start)
        taken.append(1000 * (time.perf_counter() - began) / _STRETCH)
    return float(np.median(taken[_BEGIN // _STRETCH :]))


def estimator_step(model: Any, X: Floats, y: NDArray[Any] | None, batch_size: int) -> Callable[[int], object]:
    """Returns what predicts a batch and then learns it."""

    def step(start: int) -> None:
        part = X[start : start + batch_size]
        if start:
            model.predict(part)
        if y is None:
            model.partial_fit(part)
        else:
            model.partial_fit(part, y[start : start + batch_size])

    return step


def river_step(model: Any, X: Floats, y: list[Any]) -> Callable[[int], object]:
    """Returns what predicts a row of named features and then learns it; anomaly detectors score it."""
    named = [dict(zip("abcdefghij", row, strict=True)) for row in X.tolist()]

    def step(start: int) -> None:
        if hasattr(model, "score_one"):
            model.score_one(named[start])
            model.learn_one(named[start])
        else:
            model.predict_one(named[start])
            model.learn_one(named[start], y[start])

    return step


def measure() -> dict[str, float]:
    """Returns milliseconds for a row, by name."""
    X, y = rows()
    cost: dict[str, float] = {}
    alone = {"representations": "one"}
    models: list[tuple[str, Callable[[], Any], NDArray[Any] | None]] = [
        ("CNDPMClassifier", lambda: CNDPMClassifier(random_state=0), y),
        ("CNDPMClassifier, experts alone", lambda: CNDPMClassifier(random_state=0, settings=alone), y),
        ("CNDPMRegressor", lambda: CNDPMRegressor(random_state=0), X[:, 0] + y),
        ("CNDPMDensity", lambda: CNDPMDensity(random_state=0), None),
    ]
    for name, make, targets in models:
        for size in (10, 1):
            cost[f"{name}, batches of {size}"] = milliseconds(estimator_step(make(), X, targets, size), size)
    return cost


def measure_river() -> dict[str, float]:
    """Returns milliseconds for a row through river's face, by name."""
    from cndpm.river import CNDPMAnomaly, CNDPMRegressor

    X, y = rows()
    models = {"regressor": (CNDPMRegressor(), X[:, 0] + y), "anomaly detector": (CNDPMAnomaly(), y)}
    return {f"river {name}": milliseconds(river_step(m, X, t.tolist()), 1) for name, (m, t) in models.items()}


def measure_evaluation(batch_sizes: tuple[int, ...] = (1, 2, 5, 10)) -> dict[str, float]:
    """Returns milliseconds for a row of river's evaluation, which predicts and then learns every row, by model.

    The models take turns, a stretch of rows each, beside the estimator in batches of ten: whatever else the machine
    does, it does to all of them.
    """
    from cndpm.river import CNDPMClassifier as Classifier
    from river import evaluate, forest, metrics

    X, y = rows()
    named = [dict(zip("abcdefghij", row, strict=True)) for row in X.tolist()]
    models: dict[str, Any] = {f"CNDPMClassifier(batch_size={n})": Classifier(batch_size=n) for n in batch_sizes}
    models[_FOREST] = forest.ARFClassifier(seed=0)
    step = estimator_step(CNDPMClassifier(random_state=0), X, y, 10)
    taken: dict[str, list[float]] = {name: [] for name in (*models, _TENS)}
    for first in range(0, _N, _STRETCH):
        stretch = range(first, first + _STRETCH)
        part: Any = [(named[i], int(y[i])) for i in stretch]
        for name, model in models.items():
            began = time.perf_counter()
            evaluate.progressive_val_score(part, model, metrics.Accuracy())
            taken[name].append(time.perf_counter() - began)
        began = time.perf_counter()
        for start in stretch[::10]:
            step(start)
        taken[_TENS].append(time.perf_counter() - began)
    return {name: 1000 / _STRETCH * float(np.median(all_[_BEGIN // _STRETCH :])) for name, all_ in taken.items()}


if __name__ == "__main__":
    evaluated = measure_evaluation()
    for name, value in evaluated.items():
        to_forest, to_tens = value / evaluated[_FOREST], value / evaluated[_TENS]
        ratios = f"{to_forest:.1f} times the forest, {to_tens:.1f} times batches of ten"
        print(f"progressive_val_score, {name}: {value:.2f} ms a row, {ratios}")
    cost = measure()
    for name, value in cost.items():
        ratio = value / cost[name.replace("of 1", "of 10")] if name.endswith("of 1") else 1.0
        print(f"{name}: {value:.2f} ms a row, {ratio:.1f} times what it costs in batches of ten")
    for name, value in measure_river().items():
        print(f"{name}: {value:.2f} ms a row")
