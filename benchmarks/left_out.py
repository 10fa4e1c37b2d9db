"""What each constant and member of a table's pool is worth: the pool without it, on streams that report nothing else.

    python -m benchmarks.left_out --jobs 2                    # all changes, about an hour of two cores
    python -m benchmarks.left_out --changes shipped "no stack" --seeds 0 1

Twenty-six streams of 3,000 to 8,000 rows, drawn anew for every seed: generators of river with functions that no
reported stream has, tables of scikit-learn, local rules, labels in runs. Every batch of ten is answered for what comes
next, then learned. Printed are accuracy, log loss and milliseconds a row of the process, as means over streams, and
beside each change the difference to what ships with the standard error of its mean over streams and seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from benchmarks import local_streams
from benchmarks.comparison import standard_error
from cndpm.experts.pool import (
    ClassPool,
    class_pool,
    clusters,
    kept_rows,
    mix,
    moments,
    representations,
    rules,
    trees,
)

__all__ = ["CHANGES", "STREAMS", "measure"]

Table = tuple[NDArray[np.float64], NDArray[np.int64]]
_N, _LONG = 3000, 8000


def _of_river(make: Callable[[int, int], Any], functions: tuple[int, ...], n: int = _N) -> Callable[[int], Table]:
    """Draws rows of generators that take turns, each for as long."""

    def draw(seed: int) -> Table:
        rows: list[Any] = []
        for i, function in enumerate(functions):
            rows += islice(make(function, seed + 7 * i), n // len(functions))
        _, y = np.unique([row[1] for row in rows], return_inverse=True)
        return np.array([[float(value) for value in row[0].values()] for row in rows]), y

    return draw


def _synth(name: str, **settings: Any) -> Callable[[int, int], Any]:
    """Returns what makes a generator of river of its function, or variant, and seed."""

    def make(function: int, seed: int) -> Any:
        from river.datasets import synth

        which = {"SEA": "variant", "Agrawal": "classification_function", "Sine": "classification_function"}
        chosen = {which[name]: function} if name in which else {}
        seeds = {"seed": 50 + seed} if not name.startswith("Random") else {}
        if name.startswith("RandomRBF"):
            seeds = {"seed_model": 60 + seed + function, "seed_sample": 70 + seed}
        if name == "RandomTree":
            seeds = {"seed_tree": 80 + seed + 5 * function, "seed_sample": 90 + seed}
        return getattr(synth, name)(**chosen, **seeds, **settings)

    return make


def _moving(speed: float, n_centroids: int, **shape: int) -> Callable[[int, int], Any]:
    n_moving = {"n_centroids": n_centroids, "n_drift_centroids": n_centroids}
    return _synth("RandomRBFDrift", change_speed=speed, **n_moving, **shape)


def _hyperplane(n: int, n_moving: int, change: float) -> Callable[[int, int], Any]:
    return _synth("Hyperplane", n_features=n, n_drift_features=n_moving, mag_change=change)


def _made(**shape: float) -> Callable[[int], Table]:
    def draw(seed: int) -> Table:
        made: Table = datasets.make_classification(_N, random_state=100 + seed, **shape)
        return made

    return draw


def _loaded(load: Callable[..., Any]) -> Callable[[int], Table]:
    def draw(seed: int) -> Table:
        x, y = load(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(y))
        return x[order].astype(float), y[order]

    return draw


def _local(name: str, **shape: int) -> Callable[[int], Table]:
    def draw(seed: int) -> Table:
        x, y = local_streams.STREAMS[name](np.random.default_rng(500 + seed), **shape)
        return x[-_N:], y[-_N:]

    return draw


def _turning(seed: int) -> Table:
    """Draws four Gaussians with shapes of their own that move round each other."""
    rng = np.random.default_rng(200 + seed)
    y, t = rng.integers(0, 4, _N), np.arange(_N) / _N
    shapes, phases = rng.normal(size=(4, 6, 6)) / 2, rng.uniform(0, 2 * np.pi, (4, 6))
    return 2 * np.cos(phases[y] + 3 * t[:, None]) + np.einsum("nd,nde->ne", rng.normal(size=(_N, 6)), shapes[y]), y


STREAMS: dict[str, Callable[[int], Table]] = {
    "sea": _of_river(_synth("SEA", noise=0.05), (1, 2, 1)),
    "agrawal": _of_river(_synth("Agrawal", perturbation=0.05), (2, 6)),
    "sine": _of_river(_synth("Sine", has_noise=True), (2, 3)),
    "hyperplane": _of_river(_hyperplane(8, 3, 0.01), (0,)),
    "rbf": _of_river(_synth("RandomRBF", n_classes=5, n_features=8, n_centroids=40), (0,)),
    "rbf in turn": _of_river(_synth("RandomRBF", n_classes=3, n_features=5, n_centroids=20), (0, 1, 0)),
    "led": _of_river(_synth("LED", noise_percentage=0.1), (0,)),
    "waveform": _of_river(_synth("Waveform"), (0,)),
    "tree": _of_river(_synth("RandomTree", n_classes=4, n_num_features=6, n_cat_features=0), (0,)),
    "trees in turn": _of_river(_synth("RandomTree", n_classes=2, n_num_features=4, n_cat_features=0), (0, 1)),
    "six classes": _made(n_features=20, n_informative=8, n_classes=6, n_clusters_per_class=2),
    "four of four": _made(n_features=8, n_informative=8, n_redundant=0, n_classes=4, n_clusters_per_class=4),
    "noisy": _made(n_features=15, n_informative=5, n_classes=3, n_clusters_per_class=1, flip_y=0.2),
    "digits": _loaded(datasets.load_digits),
    "breast cancer": _loaded(datasets.load_breast_cancer),
    "board": _local("board", side=4, n_visits=80),
    "objects": _local("objects", n_classes=12, n_columns=8, n_visits=300),
    "demand": _local("demand", n=_N, day=30),
    "clusters": _local("clusters", n=_N, n_classes=8, n_columns=6),
    "turning": _turning,
    "rbf moving": _of_river(_moving(0.03, n_classes=4, n_features=8, n_centroids=30), (0,), _LONG),
    "rbf moving fast": _of_river(_moving(0.1, n_classes=3, n_features=6, n_centroids=15), (0,), _LONG),
    "hyperplane fast": _of_river(_hyperplane(12, 6, 0.005), (0,), _LONG),
    "agrawal in turn": _of_river(_synth("Agrawal", perturbation=0.1), (3, 9, 3), _LONG),
    "sine turned": _of_river(_synth("Sine", has_noise=False), (1, 3, 1)),
    "led in turn": _of_river(_synth("LEDDrift", noise_percentage=0.05, n_drift_features=4), (0,)),
}
"""Draws of rows (n, d) and labels (n,) by seed."""

_MODULES = {m.__name__.rsplit(".", 1)[-1]: m for m in (class_pool, kept_rows, mix, moments, representations)}
_MODULES |= {m.__name__.rsplit(".", 1)[-1]: m for m in (clusters, rules, trees)}


def _windows(*windows: int) -> dict[str, Any]:
    n = len(windows)
    of_members = {
        "kept_rows._METRICS": np.array([[[0]]] * (n + 1) + [[[1]]]),
        "kept_rows._AMONG": np.minimum(np.arange(n + 2), n),
    }
    counts = {f"{module}.N_NEIGHBOUR_MEMBERS": n + 2 for module in ("kept_rows", "class_pool")}
    return {"kept_rows._WINDOWS": windows, **of_members, **counts}


def _temperatures(*exponents: float) -> dict[str, Any]:
    return {"mix.TEMPERATURES": np.array(exponents), "class_pool.TEMPERATURES": np.array(exponents)}


CHANGES: dict[str, dict[str, Any]] = {
    "shipped": {},
    "two rates": {"class_pool._KEEPS": (0.9, 0.985)},
    "one rate": {"class_pool._KEEPS": (0.95,)},
    "scatter of 500": {"class_pool._FADE": 0.998},
    "scatter of 100": {"class_pool._FADE": 0.99},
    "one window": _windows(),
    "a window of 500": _windows(500),
    "a window of 1,000 besides": _windows(200, 1000),
    "two temperatures": _temperatures(1.0, 0.5),
    "one temperature": _temperatures(1.0),
    "one clock": {"mix._CLOCKS": np.array([[0.99], [0.99], [0.99]])},
    "clocks 0.98, 0.998, 0.998": {"mix._CLOCKS": np.array([[0.98], [0.998], [0.998]])},
    "ridge 5": {"mix._RIDGE": 5.0},
    "ridge 80": {"mix._RIDGE": 80.0},
    "floor 1e-4": {"mix._FLOOR": 1e-4},
    "100 waves": {"representations._N_WAVES": 100},
    "300 waves": {"representations._N_WAVES": 300},
    "100 steps": {"representations._N_STEPS": 100},
    "no products": {"representations._N_PRODUCTS": 1},
    "fitted thrice": {"class_pool._FITTED_AT": (5, 50, 520)},
    "fitted twice": {"class_pool._FITTED_AT": (20, 520)},
    "renewed at a twentieth": {"moments._RENEWED": 0.05},
    "renewed at a fifth": {"moments._RENEWED": 0.2},
    "15 nearest": {"kept_rows._N_NEAREST": 15},
    "five trees": {"trees._MOST": 5},
    "no trees": {"trees._EVERY": 1e9},
    "no clusters": {"clusters._FEWEST": 1 << 40},
    "clusters renewed twice as often": {"clusters._EVERY": 0.1},
    "clusters renewed half as often": {"clusters._EVERY": 0.4},
    "four clusters": {"clusters._MOST": 4},
    "half the steps of clusters": {"clusters._N_STEPS": 4},
    "clusters of 500 rows": {"clusters._LATEST": 500},
    "no surprise": {"mix._SURPRISE": 1e9},
    "known at once": {"rules.KNOWN": 1, "class_pool.KNOWN": 1},
    "no waiting": {"rules._WAIT": 1e9},
    "no allowance": {"rules._ALLOWANCE": 0.0},
    "switch 0.01": {"rules._SWITCH": 0.01},
    "never refitted": {"class_pool._MOST_OUTSIDE": 2.0},
    "never judged": {"class_pool._IN_RUNS": 2.0},
    "unseen 1": {"moments.UNSEEN": 1.0, "clusters.UNSEEN": 1.0},
    "no new rules": {"rules._FEWEST": 1 << 40},
}
"""Constants that are exchanged, by module and name."""


@contextmanager
def changed(constants: dict[str, Any]) -> Iterator[None]:
    """Exchanges constants inside."""
    before = {}
    for name, value in constants.items():
        module, constant = name.split(".")
        before[name] = getattr(_MODULES[module], constant)
        setattr(_MODULES[module], constant, value)
    yield
    for name, value in before.items():
        module, constant = name.split(".")
        setattr(_MODULES[module], constant, value)


def measure(task: tuple[str, str, int]) -> dict[str, Any]:
    """Follows one stream with one change; returns accuracy, log loss, milliseconds a row."""
    change, stream, seed = task
    x, y = STREAMS[stream](seed)
    with changed(CHANGES[change]):
        pool, right, loss, seconds = ClassPool(x.shape[1], seed=seed), 0, 0.0, 0.0
        for start in range(0, len(y), 10):
            part, begun = slice(start, start + 10), time.process_time()
            if pool.is_ready:
                pool.admit(int(y.max()) + 1)
                said = pool.answer(x[part], "next")
                right += int((said.argmax(axis=1) == y[part]).sum())
                loss -= float(said[np.arange(len(said)), y[part]].sum())
            pool.learn(x[part], y[part])
            seconds += time.process_time() - begun
    scores = {"accuracy": 100 * right / len(y), "log_loss": loss / len(y), "milliseconds": 1000 * seconds / len(y)}
    return {"change": change, "stream": stream, "seed": seed, **scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", nargs="+", choices=CHANGES, default=list(CHANGES))
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=list(STREAMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", help="a JSON file for all that was measured")
    options = parser.parse_args()
    names = dict.fromkeys(["shipped", *options.changes])
    tasks = list(product(names, options.streams, options.seeds))
    with ProcessPoolExecutor(options.jobs) as workers:
        found = list(workers.map(measure, tasks))
    if options.out:
        Path(options.out).write_text(json.dumps(found))
    by_change = {name: [one for one in found if one["change"] == name] for name in names}
    for name, ones in by_change.items():
        means = [fmean(one[what] for one in ones) for what in ("accuracy", "log_loss", "milliseconds")]
        line = f"{name:32s} {means[0]:6.2f} % {means[1]:7.4f} nats {means[2]:6.3f} ms"
        if name != "shipped":
            for what, digits in (("accuracy", 2), ("log_loss", 4)):
                gains = [one[what] - base[what] for one, base in zip(ones, by_change["shipped"], strict=True)]
                error = standard_error(gains)  # None of a single stream
                line += f"   {fmean(gains):+.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")
        print(line, flush=True)


if __name__ == "__main__":
    main()
