"""What learning rows together costs in accuracy: ``python -m benchmarks.row_batches`` prints one line for each stream.

Rows are answered before they are learned, in batches of 1, 2, 5 and 10: the first row of a batch is answered by a model
that knows all rows before it, the last one by a model that does not know those of its batch. That is what river's
models do where `batch_size` says so. The streams are none of those that the package reports results on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river.datasets import synth

from cndpm import CNDPMClassifier
from river import datasets

_N = 3000
_SIZES = (1, 2, 5, 10)
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


def accuracy(X: NDArray[np.float64], y: NDArray[np.int64], batch_size: int) -> float:
    """Returns the share of labels that were predicted right before they were learned, in per cent.

    Args:
        X: Rows, (n, d).
        y: Labels, (n,).
        batch_size: Rows that are answered, then learned, together.
    """
    model, n_right = CNDPMClassifier(random_state=0, batch_size=batch_size), 0
    for start in range(0, len(X), batch_size):
        part = slice(start, start + batch_size)
        if start:
            n_right += int((model.predict(X[part]) == y[part]).sum())
        model.partial_fit(X[part], y[part])
    return 100 * n_right / (len(X) - batch_size)


if __name__ == "__main__":
    for name, make in STREAMS.items():
        X, y = make()
        print(f"{name:22}", *(f"{n}: {accuracy(X, y, n):5.2f} %" for n in _SIZES), flush=True)
