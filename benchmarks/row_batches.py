"""What waiting costs in accuracy: ``python -m benchmarks.row_batches`` prints one line for each stream.

Every row is answered and then given to a classifier for river, which learns it at once or has it wait for others:
until there are ten, or sooner where rows surprise. All ways have the same rows and seeds, so they are compared by
pairs; seeds draw rows and models anew (Bananas is a fixed table). Beside accuracies stands how many rows were learned
together on average. But for Bananas the streams are none of those that the package reports results on: the settings
were chosen by them.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Hashable, Iterable
from statistics import fmean
from typing import Any

import numpy as np
from figures.facts import add_options, append, facts
from numpy.typing import NDArray
from river.datasets import synth

from cndpm.river import CNDPMClassifier
from river import datasets

_N = 3000
WAITING: dict[str, dict[str, Any]] = {
    "as they come": {"batch_size": 1},
    "in tens": {"batch_size": 10, "surprise": math.inf},
    "in tens, sooner where they surprise": {"batch_size": 10},
}
"""The ways to wait that are compared."""

Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]


def collected(stream: Iterable[tuple[dict[Any, Any], Any]]) -> Labelled:
    """Returns rows (n, d) and labels (n,) of a stream of river's, columns by name."""
    pairs = list(stream)
    names = sorted(pairs[0][0])
    return np.array([[float(x[name]) for name in names] for x, _ in pairs]), np.array([int(y) for _, y in pairs])


def stagger(seed: int) -> Labelled:
    """Returns STAGGER's three concepts, a thousand rows each."""
    how = {"position": 1000, "width": 10, "seed": 3 * seed + 1}
    first, second, third = (synth.STAGGER(rule, seed=3 * seed + rule + 1) for rule in range(3))
    later = synth.ConceptDriftStream(second, third, **how)
    return collected(synth.ConceptDriftStream(first, later, **how).take(_N))


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


def chessboard(seed: int) -> Labelled:
    """Returns the fields of a chessboard that turns once, with three columns of noise beside the two that count."""
    rng = np.random.default_rng(7 + seed)
    X, angle = rng.uniform(-1, 1, size=(_N, 5)), np.linspace(0, 2 * np.pi, _N)
    u = X[:, 0] * np.cos(angle) - X[:, 1] * np.sin(angle)
    v = X[:, 0] * np.sin(angle) + X[:, 1] * np.cos(angle)
    return X, ((np.floor(2 * u) + np.floor(2 * v)) % 2).astype(np.int64)


STREAMS: dict[str, Callable[[int], Labelled]] = {
    "STAGGER": stagger,
    "LED, drifting": lambda seed: collected(
        synth.LEDDrift(seed=seed + 1, noise_percentage=0.1, n_drift_features=4).take(_N)
    ),
    "Waveform": lambda seed: collected(synth.Waveform(seed=seed + 1).take(_N)),
    "Bananas": lambda _: collected(datasets.Bananas().take(_N)),
    "in turn, every 300": lambda seed: in_turn(300, seed=100 * seed + 5),
    "in turn, every 60": lambda seed: in_turn(60, seed=100 * seed + 6),
    "chessboard that turns": chessboard,
}


def accuracy(X: NDArray[np.float64], y: NDArray[np.int64], seed: int = 0, **waiting: Any) -> tuple[float, float]:
    """Returns the share of labels that were predicted right before they were learned, in per cent, and rows a lesson.

    Args:
        X: Rows, (n, d).
        y: Labels, (n,).
        seed: Of the model.
        waiting: How rows wait: `batch_size` and `surprise`.
    """
    model, n_right, n_lessons = CNDPMClassifier(seed=seed, **waiting), 0, 0
    for i, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        named: dict[Hashable, Any] = dict(enumerate(row))
        n_right += i > 0 and model.predict_one(named) == label
        model.learn_one(named, label)
        n_lessons += not model.n_waiting
    return 100 * n_right / (len(X) - 1), len(X) / n_lessons


def main() -> None:
    """Prints and keeps one line for every stream and way to wait."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=list(STREAMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of rows and models")
    add_options(parser)
    options = parser.parse_args()
    made_by = facts(commit=options.commit)
    for stream, (way, waiting) in itertools.product(options.streams, WAITING.items()):
        found = [accuracy(*STREAMS[stream](seed), seed, **waiting) for seed in options.seeds]
        right, together = (fmean(one) for one in zip(*found, strict=True))
        print(f"{stream:22} {way:36} {right:.2f} %, {together:.1f} rows", flush=True)
        if options.out:
            told = zip(options.seeds, found, strict=True)
            append(
                options.out, [made_by | {"stream": stream, "way": way, "seed": s, "accuracy": f} for s, (f, _) in told]
            )


if __name__ == "__main__":
    main()
