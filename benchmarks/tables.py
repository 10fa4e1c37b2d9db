"""Tables that do not change, beside models for them, all with their defaults.

    python -m benchmarks.tables                                 # all sections, about ten minutes of one core
    python -m benchmarks.tables folds                           # scikit-learn's own tables, five folds
    python -m benchmarks.tables made friedman --seeds 0 1 2     # what is hard to learn, 30 % held out
    python -m benchmarks.tables curves --out tables.jsonl       # more rows, better answers

Accuracies in per cent, or 100 times R squared, with the standard error over folds or seeds. Log losses at the best
temperature are in :mod:`benchmarks.evidence`, section calibration.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from statistics import fmean
from typing import Any

import numpy as np
import torch
from figures.facts import add_options, append, facts
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB

from benchmarks.comparison import standard_error
from cndpm import CNDPMClassifier, CNDPMRegressor

__all__ = [
    "SECTIONS",
    "clustered",
    "curves",
    "curves_of",
    "fallen",
    "folds",
    "friedman",
    "friedman3",
    "made",
    "many_classes",
]

Table = tuple[NDArray[np.float64], NDArray[Any]]
Result = dict[str, Any]
_SIZES = (500, 700, 1000, 1150, 1300, 2000, 2800, 4000, 5600, 8000)
_N_HELD = 2000


def clustered(n: int, seed: int) -> Table:
    """Draws ten classes of three clusters each, (n, 12)."""
    shape = {"n_features": 12, "n_informative": 10, "n_classes": 10, "n_clusters_per_class": 3}
    table: Table = datasets.make_classification(n, **shape, random_state=seed)
    return table


def many_classes(n: int, seed: int) -> Table:
    """Draws 26 classes of two clusters each, (n, 16)."""
    shape = {"n_features": 16, "n_informative": 12, "n_classes": 26, "n_clusters_per_class": 2, "class_sep": 2.0}
    table: Table = datasets.make_classification(n, **shape, random_state=seed)
    return table


def friedman3(n: int, seed: int) -> Table:
    """Draws the third of Friedman's functions with noise of 0.1, (n, 4)."""
    table: Table = datasets.make_friedman3(n, noise=0.1, random_state=seed)
    return table


CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "cndpm": lambda seed: CNDPMClassifier(random_state=seed),
    "gradient boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "forest": lambda seed: RandomForestClassifier(random_state=seed),
    "naive Bayes": lambda _: GaussianNB(),
}
REGRESSORS: dict[str, Callable[[int], Any]] = {
    "cndpm": lambda seed: CNDPMRegressor(random_state=seed),
    "gradient boosting": lambda seed: HistGradientBoostingRegressor(random_state=seed),
}
TABLES: dict[str, Callable[[], Table]] = {
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "made, 5 classes of 2 clusters": lambda: datasets.make_classification(
        2000, 12, n_informative=8, n_classes=5, n_clusters_per_class=2, random_state=0
    ),
}
CURVES: dict[str, tuple[Callable[[int, int], Table], dict[str, Callable[[int], Any]]]] = {
    "made, 10 classes of 3 clusters": (clustered, CLASSIFIERS),
    "made, 26 classes of 2 clusters": (many_classes, CLASSIFIERS),
    "friedman3": (friedman3, REGRESSORS),
}


def folds(_: Sequence[int]) -> Iterator[Result]:
    """Five folds in random order, scikit-learn's own data."""
    parts = StratifiedKFold(5, shuffle=True, random_state=0)
    for table, load in TABLES.items():
        x, y = load()
        for model, make in CLASSIFIERS.items():
            yield {"table": table, "model": model} | _mean(100 * cross_val_score(make(0), x, y, cv=parts))


def made(seeds: Sequence[int], n: int = 8000) -> Iterator[Result]:
    """8,000 rows of ten classes of three clusters, twelve columns; 30 % held out."""
    for model in ("cndpm", "gradient boosting"):
        scores = [_held_out(CLASSIFIERS[model](seed), clustered(n, seed), seed) for seed in seeds]
        yield {"table": "made, 10 classes of 3 clusters", "model": model} | _mean(scores)


def friedman(seeds: Sequence[int], n: int = 2000) -> Iterator[Result]:
    """2,000 rows of Friedman's third function, noise 0.1; 100 times R squared on 30 % held out."""
    for model, make in REGRESSORS.items():
        scores = [_held_out(make(seed), friedman3(n, seed), seed) for seed in seeds]
        yield {"table": "friedman3", "model": model} | _mean(scores)


def curves(seeds: Sequence[int], sizes: Sequence[int] = _SIZES) -> Iterator[Result]:
    """The first 500 to 8,000 rows of three tables, the same 2,000 others held out; and what more rows cost at worst."""
    for table, (draw, models) in CURVES.items():
        for model, asked in (("cndpm", sizes), ("gradient boosting", (sizes[0], sizes[-1]))):
            found = [curves_of(models[model], draw, seed, asked) for seed in seeds]
            for size, scores in zip(asked, zip(*found, strict=True), strict=True):
                yield {"table": table, "model": model, "n_rows": size} | _mean(scores)
            of_means = fallen([fmean(scores) for scores in zip(*found, strict=True)])
            yield {"table": table, "model": model, "lost": of_means, "by seed": [fallen(one) for one in found]}


def fallen(scores: Sequence[float]) -> float:
    """Returns by how much a score is below the best of those before it, at worst.

    Example:
        >>> fallen([10.0, 30.0, 28.0, 40.0])
        2.0
    """
    return max(best - score for best, score in zip(accumulate(scores, max), scores, strict=True))


SECTIONS: dict[str, Callable[[Sequence[int]], Iterator[Result]]] = {
    section.__name__: section for section in (folds, made, friedman, curves)
}


def curves_of(
    make: Callable[[int], Any], draw: Callable[[int, int], Table], seed: int, sizes: Sequence[int]
) -> list[float]:
    """Returns the scores (%) of models that learned ever more of the same rows.

    Args:
        make: Makes a model for a seed.
        draw: Draws so many rows for a seed.
        seed: Of rows and models.
        sizes: Rows that are learned, ascending.
    """
    x, y = draw(max(sizes) + _N_HELD, seed)
    held = slice(max(sizes), None)
    return [100 * float(make(seed).fit(x[:n], y[:n]).score(x[held], y[held])) for n in sizes]


def _held_out(model: Any, table: Table, seed: int) -> float:
    x, held, y, truth = train_test_split(*table, test_size=0.3, random_state=seed)
    return 100 * float(model.fit(x, y).score(held, truth))


def _mean(scores: Sequence[float] | NDArray[np.float64]) -> Result:
    """Returns what is kept of some scores."""
    values = [float(score) for score in scores]
    return {"mean": fmean(values), "standard_error": standard_error(values), "scores": values}


def _line(row: Result) -> str:
    name = f"{row['table']:30} {row['model']:18} " + (f"{row['n_rows']:5} rows" if "n_rows" in row else "")
    if "mean" not in row:
        by_seed = ", ".join(f"{lost:.2f}" for lost in row["by seed"])
        return f"{name}lost by more rows at worst: {row['lost']:.2f} in the mean, by seed {by_seed}"
    error = "" if row["standard_error"] is None else f" ± {row['standard_error']:.2f}"
    return f"{name} {row['mean']:6.2f}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all where none is named")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of rows, splits and models")
    add_options(parser)
    options = parser.parse_args()
    for section in options.sections or SECTIONS:
        print(f"\n{section}: {SECTIONS[section].__doc__}")
        for row in SECTIONS[section](options.seeds):
            print(_line(row), flush=True)
            if options.out:
                made_by = facts(commit=options.commit) | {"seeds": options.seeds, "section": section}
                append(options.out, [made_by | row])


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
