"""Rows sorted by class: does the class that came last drown the others?

    python -m benchmarks.by_class --quick                          # two tables, one seed, seconds
    python -m benchmarks.by_class --seeds 0 1 2 --out by-class.jsonl

70 % of every table are learned sorted by class, and the same rows shuffled; by `fit` and by `partial_fit` in tens and
in fifties. The other 30 %, of all classes, are asked about before and after `consolidate()`. Shown are accuracies in
per cent, means over seeds: of `predict` and of `predict(when="any")` after sorted rows, and of `predict` after shuffled
ones; then by how much the first is below the second and the third, and at worst.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import torch
from figures.facts import add_options, append, facts
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.model_selection import train_test_split

from cndpm import CNDPMClassifier

__all__ = ["TABLES", "WAYS", "compared", "summary"]

Table = tuple[NDArray[np.float64], NDArray[np.int64]]
Result = dict[str, Any]
_BLOBS = (2, 5, 20, 26, 40, 100, 200)


def blobs(n_classes: int, seed: int) -> Table:
    """Draws 100 rows of every class around a centre each, (100 n, 16)."""
    table: Table = datasets.make_blobs(100 * n_classes, 16, centers=n_classes, cluster_std=3, random_state=seed)
    return table


def made(seed: int) -> Table:
    """Draws 3,000 rows of ten classes of three clusters, (3000, 12)."""
    shape = {"n_samples": 3000, "n_features": 12, "n_informative": 10, "n_classes": 10, "n_clusters_per_class": 3}
    table: Table = datasets.make_classification(**shape, random_state=seed)
    return table


TABLES: dict[str, Callable[[int], Table]] = {
    **{f"blobs, {n} classes": partial(blobs, n) for n in _BLOBS},
    "digits": lambda _: datasets.load_digits(return_X_y=True),
    "wine": lambda _: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda _: datasets.load_breast_cancer(return_X_y=True),
    "made, 10 classes of 3 clusters": made,
}
"""Rows and classes, by name, for a seed."""

WAYS: dict[str, int | None] = {"fit": None, "tens": 10, "fifties": 50}
"""How rows are given: all to `fit`, or so many at a time to `partial_fit`."""


def learned(x: NDArray[np.float64], y: NDArray[np.int64], size: int | None, seed: int) -> CNDPMClassifier:
    """Returns a default model that has learned rows in their order, `size` at a time or by `fit`."""
    model = CNDPMClassifier(random_state=seed)
    if size is None:
        return model.fit(x, y)
    for start in range(0, len(x), size):
        model.partial_fit(x[start : start + size], y[start : start + size])
    return model


def compared(table: Table, size: int | None, seed: int) -> Iterator[Result]:
    """Yields the accuracies of sorted and shuffled rows (%), before and after `consolidate()`.

    Args:
        table: Rows (n, d) and classes (n,).
        size: Rows at a time; None for `fit`.
        seed: Of the split, the shuffling and the models.
    """
    x, held, y, truth = train_test_split(*table, test_size=0.3, random_state=seed, stratify=table[1])
    orders = np.argsort(y, kind="stable"), np.random.default_rng(seed).permutation(len(y))
    in_order, shuffled = (learned(x[order], y[order], size, seed) for order in orders)
    for consolidated in (False, True):
        if consolidated:
            in_order.consolidate()
            shuffled.consolidate()
        yield {
            "consolidated": consolidated,
            "sorted": 100 * float((in_order.predict(held) == truth).mean()),
            "sorted, any": 100 * float((in_order.predict(held, when="any") == truth).mean()),
            "shuffled": 100 * float((shuffled.predict(held) == truth).mean()),
            "n_experts": [in_order.n_experts_, shuffled.n_experts_],
        }


def below(result: Result) -> tuple[float, float]:
    """Returns by how many points `predict` after sorted rows is below "any", and below shuffled rows."""
    return result["sorted, any"] - result["sorted"], result["shuffled"] - result["sorted"]


def summary(results: Sequence[Result]) -> str:
    """Says how far `predict` after sorted rows is below, in the mean and at worst."""
    words = []
    for what, points in zip(("when='any'", "shuffled"), zip(*map(below, results), strict=True), strict=True):
        worst = results[int(np.argmax(points))]
        where = f"{worst['table']}, {worst['way']}, seed {worst['seed']}"
        words.append(f"below {what}: {fmean(points):.2f} points in the mean, {max(points):.2f} at worst ({where})")
    return "\n".join(words)


def _line(results: Sequence[Result]) -> str:
    """Returns a line of means over seeds, for results of one table, way and time."""
    means = [fmean(row[key] for row in results) for key in ("sorted", "sorted, any", "shuffled")]
    differences = [fmean(points) for points in zip(*map(below, results), strict=True)]
    worst = [max(points) for points in zip(*map(below, results), strict=True)]
    name = f"{results[0]['table']}, {results[0]['way']}{', consolidated' if results[0]['consolidated'] else ''}"
    shown = " ".join(f"{value:8.2f}" for value in (*means, *differences, *worst))
    return f"{name:52} {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of tables, splits, orders and models")
    parser.add_argument("--quick", action="store_true", help="26 blobs and wine, the first seed")
    add_options(parser)
    options = parser.parse_args()
    tables = ["blobs, 26 classes", "wine"] if options.quick else options.tables
    seeds = options.seeds[:1] if options.quick else options.seeds
    print(f"{'':52} {'sorted':>8} {'any':>8} {'shuffled':>8} {'<any':>8} {'<shuf.':>8} {'worst':>8} {'worst':>8}")
    results: list[Result] = []
    for name in tables:
        for way, size in WAYS.items():
            about = {"table": name, "way": way}
            found = [about | {"seed": s} | row for s in seeds for row in compared(TABLES[name](s), size, s)]
            results += found
            for when in (False, True):
                print(_line([row for row in found if row["consolidated"] is when]), flush=True)
    print(summary(results))
    if options.out:
        append(options.out, [facts(commit=options.commit) | row for row in results])


if __name__ == "__main__":
    # scikit-learn takes fifty shuffled rows of forty classes for values; the answers do not depend on it
    warnings.filterwarnings("ignore", "The number of unique classes is greater", UserWarning)
    torch.set_num_threads(1)
    main()
