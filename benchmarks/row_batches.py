"""What waiting costs in accuracy: ``python -m benchmarks.row_batches`` prints one line for each stream.

Every row is answered and then given to a model for river, which learns it at once or has it wait for others. Beside the
share of right answers stands how many rows were learned together on average. But for Bananas the streams are none of
those that the package reports results on: the settings were chosen by them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river.datasets import synth

from cndpm.river import CNDPMClassifier
from river import datasets

_N = 3000
_WAITING: tuple[dict[str, Any], ...] = ({"batch_size": 1}, {}, {"surprise": 1.0}, {"surprise": 2.0}, {"batch_size": 20})
"""The ways to wait that are compared."""

Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]


def collected(stream: Iterable[tuple[dict[Any, Any], Any]]) -> Labelled:
    """Returns rows (n, d) and labels (n,) of a stream of river's, columns by name."""
    pairs = list(stream)
    names = sorted(pairs[0][0])
    return np.array([[float(x[name]) for name in names] for x, _ in pairs]), np.array([int(y) for _, y in pairs])


def stagger() -> Labelled:
    """Returns STAGGER's three concepts, a thousand rows each."""
    how = {"position": 1000, "width": 10, "seed": 1}
    later = synth.ConceptDriftStream(synth.STAGGER(1, seed=2), synth.STAGGER(2, seed=3), **how)
    return collected(synth.ConceptDriftStream(synth.STAGGER(0, seed=1), later, **how).take(_N))


def in_turn(every: int, seed: int) -> Labelled:
    """Returns three classes in eight dimensions whose means are one of three sets in turn.

    Args:
        every: Rows after which the set changes.
        seed: Of means and rows.
    """
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(3, 3, 8)) * 1.3
    y = rng.integers(3, size=_N)
    return rng.normal(size=(_N, 8)) + means[(np.arange(_N) // every) % 3, y], y


def chessboard() -> Labelled:
    """Returns the fields of a chessboard that turns once, with three columns of noise beside the two that count."""
    rng = np.random.default_rng(7)
    X, angle = rng.uniform(-1, 1, size=(_N, 5)), np.linspace(0, 2 * np.pi, _N)
    u = X[:, 0] * np.cos(angle) - X[:, 1] * np.sin(angle)
    v = X[:, 0] * np.sin(angle) + X[:, 1] * np.cos(angle)
    return X, ((np.floor(2 * u) + np.floor(2 * v)) % 2).astype(np.int64)


STREAMS: dict[str, Callable[[], Labelled]] = {
    "STAGGER": stagger,
    "LED, drifting": lambda: collected(synth.LEDDrift(seed=1, noise_percentage=0.1, n_drift_features=4).take(_N)),
    "Waveform": lambda: collected(synth.Waveform(seed=1).take(_N)),
    "Bananas": lambda: collected(datasets.Bananas().take(_N)),
    "in turn, every 300": lambda: in_turn(300, seed=5),
    "in turn, every 60": lambda: in_turn(60, seed=6),
    "chessboard that turns": chessboard,
}


def accuracy(X: NDArray[np.float64], y: NDArray[np.int64], **waiting: Any) -> tuple[float, float]:
    """Returns the share of labels that were predicted right before they were learned, in per cent, and rows a lesson.

    Args:
        X: Rows, (n, d).
        y: Labels, (n,).
        waiting: How rows wait: `batch_size` and `surprise`.
    """
    model, n_right, n_lessons = CNDPMClassifier(**waiting), 0, 0
    for i, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        named: dict[Hashable, Any] = dict(enumerate(row))
        n_right += i > 0 and model.predict_one(named) == label
        model.learn_one(named, label)
        n_lessons += not model.n_waiting
    return 100 * n_right / (len(X) - 1), len(X) / n_lessons


if __name__ == "__main__":
    for name, make in STREAMS.items():
        X, y = make()
        print(f"{name:22}", end="", flush=True)
        for waiting in _WAITING:
            right, together = accuracy(X, y, **waiting)
            how = ", ".join(f"{key} {value}" for key, value in waiting.items()) or "default"
            print(f" | {how}: {right:.2f} %, {together:.1f} rows", end="", flush=True)
        print()
