"""River's own datasets, row by row by its own evaluation: ``python -m benchmarks.river_data`` prints one line each.

Every row is predicted, then learned; all models with their defaults, those of river for regression after its scaler.
The line says accuracy or mean absolute error, seconds, and the milliseconds of the slowest row. ``--kind regression``
has regressors; ``--kind words`` has streams with words, as words, and in river's idiom for them, a one-hot encoder.
Every seed draws rows of its own where they are generated.
"""

from __future__ import annotations

import argparse
import itertools
import numbers
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from river.datasets import synth

from cndpm.river import CNDPMClassifier, CNDPMRegressor
from river import compose, datasets, forest, linear_model, metrics, neighbors, preprocessing, tree

Stream = Iterable[tuple[dict[Any, Any], Any]]


def agrawal_words(draw: int, n: int = 4000) -> Iterator[tuple[dict[str, Any], int]]:
    """Level of education, make of car and zip code as words; the rule changes in the middle."""
    for rule, seed in ((3, 1), (6, 2)):
        for x, y in synth.Agrawal(classification_function=rule, seed=2 * draw + seed).take(n // 2):
            yield {name: f"{name} {v}" if name in ("elevel", "car", "zipcode") else v for name, v in x.items()}, y


def stagger_words(draw: int, n: int = 3000) -> Iterator[tuple[dict[str, str], int]]:
    """Size, colour and shape as words; three rules one after the other."""
    for rule in range(3):
        for x, y in synth.STAGGER(classification_function=rule, seed=3 * draw + rule).take(n // 3):
            yield {name: f"{name} {value}" for name, value in x.items()}, y


def mv(draw: int, n: int = 2000) -> Iterator[tuple[dict[str, Any], float]]:
    """Mv, numbers and words; names are words too, since river's forest sorts them."""
    for x, y in synth.Mv(seed=draw + 1).take(n):
        yield {str(name): value for name, value in x.items()}, y


def mv_sign(draw: int, n: int = 3000) -> Iterator[tuple[dict[str, Any], bool]]:
    """Mv, of which the sign of the target is to be told."""
    return ((x, y > 0) for x, y in mv(draw, n))


def told(stream: Stream) -> Stream:
    """The same with a column for every word from the first row on."""
    rows = list(stream)
    words = sorted({(name, value) for x, _ in rows for name, value in x.items() if isinstance(value, str)})
    for x, y in rows:
        plain = {name: value for name, value in x.items() if not isinstance(value, str)}
        yield plain | {f"{name}_{word}": float(x[name] == word) for name, word in words}, y


def one_hot(model: Any) -> Any:
    """River's idiom for words beside numbers."""
    return (compose.SelectType(str) | preprocessing.OneHotEncoder()) + compose.SelectType(numbers.Number) | model


def scaled(model: Any) -> Any:
    return preprocessing.StandardScaler() | model


Makers = dict[str, Callable[[int], Any]]
STREAMS: dict[str, dict[str, Callable[[int], Stream]]] = {
    "classes": {
        "ImageSegments": lambda _: datasets.ImageSegments(),
        "Bananas": lambda _: datasets.Bananas(),
        "Phishing": lambda _: datasets.Phishing(),
    },
    "regression": {
        "TrumpApproval": lambda _: datasets.TrumpApproval(),
        "ChickWeights": lambda _: datasets.ChickWeights(),
        "Friedman": lambda draw: synth.Friedman(seed=draw + 1).take(2000),
        "FriedmanDrift": lambda draw: synth.FriedmanDrift(position=(500, 1000, 1500), seed=draw + 1).take(2000),
        "Planes2D": lambda draw: synth.Planes2D(seed=draw + 1).take(2000),
        "Mv": mv,
    },
    "words": {"Agrawal": agrawal_words, "STAGGER": stagger_words, "Mv": mv_sign},
}
MODELS: dict[str, Makers] = {
    "classes": {"cndpm": lambda seed: CNDPMClassifier(seed=seed), "ARF": lambda seed: forest.ARFClassifier(seed=seed)},
    "regression": {
        "cndpm": lambda seed: CNDPMRegressor(seed=seed),
        "ARF": lambda seed: one_hot(scaled(forest.ARFRegressor(seed=seed))),
        "adaptive tree": lambda seed: one_hot(scaled(tree.HoeffdingAdaptiveTreeRegressor(seed=seed))),
        "nearest": lambda _: one_hot(scaled(neighbors.KNNRegressor())),
        "linear": lambda _: one_hot(scaled(linear_model.LinearRegression())),
    },
    "words": {
        "cndpm, all columns told": lambda seed: CNDPMClassifier(seed=seed),
        "cndpm, one-hot": lambda seed: one_hot(CNDPMClassifier(seed=seed)),
        "cndpm, words": lambda seed: CNDPMClassifier(seed=seed),
        "ARF, one-hot": lambda seed: one_hot(forest.ARFClassifier(seed=seed)),
        "ARF, words": lambda seed: forest.ARFClassifier(seed=seed),
    },
}


def evaluated(stream: Stream, model: Any, metric: Any) -> tuple[float, float, float]:
    """Returns the metric, seconds, and milliseconds of the slowest row."""
    slowest, began = 0.0, time.perf_counter()
    for x, y in stream:
        before = time.perf_counter()
        answer = model.predict_one(x)
        model.learn_one(x, y)
        slowest = max(slowest, time.perf_counter() - before)
        if answer is not None:
            metric.update(y, answer)
    return metric.get(), time.perf_counter() - began, 1000 * slowest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=STREAMS, default="classes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--streams", nargs="+")
    parser.add_argument("--models", nargs="+")
    given = parser.parse_args()
    streams = given.streams or list(STREAMS[given.kind])
    models = given.models or list(MODELS[given.kind])
    for stream, seed, name in itertools.product(streams, given.seeds, models):
        make_model = MODELS[given.kind][name]
        rows = STREAMS[given.kind][stream](seed)
        metric = metrics.MAE() if given.kind == "regression" else metrics.Accuracy()
        score, seconds, slowest = evaluated(told(rows) if "told" in name else rows, make_model(seed), metric)
        shown = f"{score:9.4f}" if given.kind == "regression" else f"{100 * score:7.2f} %"
        print(f"{stream:14} seed {seed} {name:24} {shown} {seconds:6.1f} s, slowest row {slowest:6.0f} ms", flush=True)


if __name__ == "__main__":
    main()
