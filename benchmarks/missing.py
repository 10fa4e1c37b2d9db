"""A fifth of the cells removed at random, beside scikit-learn's imputers before the same model.

``python -m benchmarks.missing`` learns three quarters of each dataset, one or two classes after the other in calls of
50 rows, and prints the accuracy on the last quarter, a line for each seed. Imputers are fitted on all training rows at
once; the model completes rows as they come.

``python -m benchmarks.missing --choose`` is how the way to complete rows was chosen: it leaves that last quarter alone,
learns two thirds of the rest, and compares ways on the other third.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.impute import KNNImputer, SimpleImputer

from cndpm import CNDPMClassifier
from cndpm.estimators import missing, reading
from river import datasets

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

SHARE = 0.2


def of_river(stream: datasets.base.Dataset) -> tuple[Array, Labels]:
    rows = list(stream)
    names = sorted(rows[0][0])
    X = np.array([[float(x[name]) for name in names] for x, _ in rows])
    return X, np.unique([str(y) for _, y in rows], return_inverse=True)[1]


DATASETS: dict[str, Callable[[], tuple[Array, Labels]]] = {
    "digits": lambda: load_digits(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "ImageSegments": lambda: of_river(datasets.ImageSegments()),
    "Phishing": lambda: of_river(datasets.Phishing()),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("datasets", nargs="*", default=list(DATASETS))
    given = parser.parse_args()
    for name in given.datasets:
        X, y = DATASETS[name]()
        for seed in range(given.seeds):
            shown = chosen_among(X, y, seed) if given.choose else reported(X, y, seed)
            print(name, seed, {way: round(100 * share, 2) for way, share in shown.items()}, flush=True)


def parts(n: int) -> tuple[Labels, Labels]:
    """Returns the rows for learning and choosing, and those of the test, the same for all seeds."""
    order = np.random.default_rng(2026).permutation(n)
    return order[: 3 * n // 4], order[3 * n // 4 :]


def with_holes(X: Array, rng: np.random.Generator) -> Array:
    """Returns X with a fifth of its cells missing; a row of which nothing would be left stays whole."""
    is_missing = rng.random(X.shape) < SHARE
    is_missing[is_missing.all(axis=1)] = False
    return np.where(is_missing, np.nan, X)


def in_order(rows: Labels, y: Labels) -> Labels:
    """Returns rows class after class; two classes at a time where there are many."""
    width = 2 if len(np.unique(y)) > 3 else 1
    return rows[np.argsort(y[rows] // width, kind="stable")]


def reported(X: Array, y: Labels, seed: int) -> dict[str, float]:
    learned, test = parts(len(X))
    rng = np.random.default_rng(seed)
    learned, holes = in_order(rng.permutation(learned), y), with_holes(X, rng)
    return {
        "complete": right(X, y, learned, test),
        "NaN as they are": right(holes, y, learned, test),
        **imputed(holes, y, learned, test),
    }


def imputed(holes: Array, y: Labels, learned: Labels, test: Labels) -> dict[str, float]:
    imputers = {"SimpleImputer": SimpleImputer(), "KNNImputer": KNNImputer()}
    filled = {name: imputer.fit(holes[learned]).transform(holes) for name, imputer in imputers.items()}
    return {name: right(rows, y, learned, test) for name, rows in filled.items()}


def chosen_among(X: Array, y: Labels, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(100 + seed)
    order = rng.permutation(parts(len(X))[0])
    learned, held_out = in_order(order[: 2 * len(order) // 3], y), order[2 * len(order) // 3 :]
    holes = with_holes(X, rng)
    found = imputed(holes, y, learned, held_out)
    for name, fill in {"together": missing.fill_missing, "known rows alone": by_known_rows}.items():
        with filled_by(fill):
            model = taught(holes, y, learned)
        ways = missing.complete_rows(holes[held_out].astype(np.float32), known_rows(model))
        one = missing.mean_over(ways, ways.rows.astype(np.float64))
        found[f"{name}, one answer"] = float((model.predict(one) == y[held_out]).mean())
        found[f"{name}, averaged"] = float((model.predict(holes[held_out]) == y[held_out]).mean())
    return found


def known_rows(model: CNDPMClassifier) -> missing.Rows:
    watch = model.learner_.watch
    assert watch is not None
    return watch.rows


def by_known_rows(rows: missing.Rows, known: missing.Rows) -> missing.Rows:
    """Returns rows completed by known rows alone, where there are some."""
    if len(known) < 10 or not np.isnan(rows).any():
        return missing.fill_missing(rows, known)
    ways = missing.complete_rows(rows, known)
    return missing.mean_over(ways, ways.rows.astype(np.float64)).astype(np.float32)


@contextmanager
def filled_by(fill: Callable[[missing.Rows, missing.Rows], missing.Rows]) -> Iterator[None]:
    """Completes rows that are learned in another way."""
    with patch.object(reading, "fill_missing", fill):
        yield


def taught(X: Array, y: Labels, learned: Labels) -> CNDPMClassifier:
    model = CNDPMClassifier(memory_size=100, settings={"representations": "one"}, random_state=0)
    for start in range(0, len(learned), 50):
        rows = learned[start : start + 50]
        model.partial_fit(X[rows], y[rows])
    return model.consolidate()


def right(X: Array, y: Labels, learned: Labels, test: Labels) -> float:
    return float((taught(X, y, learned).predict(X[test]) == y[test]).mean())


if __name__ == "__main__":
    main()
