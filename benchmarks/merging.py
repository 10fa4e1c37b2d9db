"""Merging against a single pass: tables and Split-MNIST learned in shards, then merged.

    python -m benchmarks.merging rows --out merging.jsonl  # a minute on one core
    CNDPM_DATA=... python -m benchmarks.merging            # images, about three minutes on one core

Rows: halves in random order, thirds of a stream whose columns wander, thirds by region. A model of the same rows in the
same order answers beside the merged one, and both after `consolidate()`. Shown are the largest and the mean difference
of a probability on 30 % held out, log losses and accuracies of both.

Images: the shards are quarters of the stream, one after the other. The first begins as any model does; the others take
over its representation. What is compared: samples of every expert, accuracy on the test set, statistics, and the merged
file's size with the time that merging takes. A second part merges in other orders and by pairs.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from figures.facts import add_options, append, facts
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.metrics import log_loss
from torch import Tensor

from cndpm import CNDPMClassifier
from cndpm import merge as merge_models
from cndpm.datasets import load_dataset
from cndpm.experts.gaussian import GaussianBank
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.model.cndpm import CNDPM
from cndpm.model.merging import Joint, blank, with_same_representation
from cndpm.model.settings import CNDPMSettings
from cndpm.state import save_state

_N_SHARDS = 4


Array = NDArray[Any]
Part = tuple[Array, Array]
Row = dict[str, Any]


def merge(learners: Sequence[CNDPM]) -> CNDPM:
    """Returns one learner that has learned what all of them have; they are left alone."""
    first, *others = (_copied(learner) for learner in learners)
    joint = Joint(first)
    for learner in others:
        joint.add(learner)
    return joint.united()


def _copied(learner: CNDPM) -> CNDPM:
    copy = blank(learner)
    copy.load_state_dict(learner.state_dict())
    return copy


def overlapping(seed: int) -> Part:
    """Draws 1,500 rows of two classes that overlap, (1500, 10)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=1500)
    return rng.normal(size=(1500, 10)) + 1.5 * y[:, None] * (np.arange(10) < 3), y


TABLES: dict[str, Callable[[int], Part]] = {
    "two classes that overlap": overlapping,
    "breast cancer": lambda _: datasets.load_breast_cancer(return_X_y=True),
    "digits": lambda _: datasets.load_digits(return_X_y=True),
}


def halves(x: Array, y: Array) -> tuple[Array, Array, int]:
    """Returns the rows as they are, for two shards."""
    return x, y, 2


def thirds_by_time(x: Array, y: Array) -> tuple[Array, Array, int]:
    """Returns the rows with all columns wandering by two deviations from the first to the last, for three shards."""
    return x + 2 * x.std(axis=0) * np.linspace(0, 1, len(x))[:, None], y, 3


def thirds_by_region(x: Array, y: Array) -> tuple[Array, Array, int]:
    """Returns the rows sorted along the first principal axis of standard units, for three shards."""
    standard = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
    order = np.argsort(standard @ np.linalg.svd(standard, full_matrices=False)[2][0], kind="stable")
    return x[order], y[order], 3


WAYS = {"iid halves": halves, "thirds by time": thirds_by_time, "thirds by region": thirds_by_region}
"""How rows are given to shards, by name."""


def compared(table: Part, way: Callable[[Array, Array], tuple[Array, Array, int]], seed: int) -> Iterator[Row]:
    """Yields how a merged model and one of the same rows differ, before and after `consolidate()`, for every time.

    Args:
        table: Rows (n, d) and classes (n,).
        way: Puts them in order and says how many shards there are.
        seed: Of the order, the rows held out and the models.
    """
    order = np.random.default_rng(seed).permutation(len(table[0]))
    x, y, n_shards = way(table[0][order], table[1][order])
    held = np.random.default_rng(seed + 1).uniform(size=len(x)) < 0.3
    asked, truth, x, y = x[held], y[held], x[~held], y[~held]
    single = CNDPMClassifier(random_state=seed).partial_fit(x, y)
    shards: list[CNDPMClassifier] = []
    for part in np.array_split(np.arange(len(x)), n_shards):
        began = shards[0].with_same_representation() if shards else CNDPMClassifier(random_state=seed)
        shards.append(began.partial_fit(x[part], y[part]))
        if not shards[0].n_experts_:
            shards[0].consolidate()  # others can begin with its representation once it has an expert
    merged = merge_models(shards)
    for consolidated in (False, True):
        if consolidated:
            merged.consolidate()
            single.consolidate()
        for when in ("now", "any"):
            mine, other = (model.predict_proba(asked, when=when) for model in (merged, single))
            yield {"consolidated": consolidated, "when": when} | apart(mine, other, truth, single.classes_)


def apart(merged: Array, single: Array, truth: Array, classes: Array) -> Row:
    """Compares the probabilities of two models, (n, C).

    Args:
        merged: Of the merged model.
        single: Of the single one.
        truth: Classes, (n,).
        classes: Of the columns, (C,).
    """
    differences = np.abs(merged - single)
    losses = [float(log_loss(truth, proba, labels=classes)) for proba in (merged, single)]
    right = [100 * float((classes[proba.argmax(axis=1)] == truth).mean()) for proba in (merged, single)]
    return {
        "largest difference": float(differences.max()),
        "mean difference": float(differences.mean()),
        "log loss, merged": losses[0],
        "log loss, single": losses[1],
        "accuracy, merged": right[0],
        "accuracy, single": right[1],
    }


def compare_rows(options: argparse.Namespace) -> None:
    """Prints every comparison of rows, means over seeds but for the largest difference."""
    print(f"{'merged and single':64} {'largest':>8} {'mean':>8} {'log losses':>17} {'accuracies':>17}")
    for name, load in TABLES.items():
        for way, give in WAYS.items():
            found = [{"seed": seed} | row for seed in options.seeds for row in compared(load(seed), give, seed)]
            for consolidated, when in itertools.product((False, True), ("now", "any")):
                rows = [row for row in found if (row["consolidated"], row["when"]) == (consolidated, when)]
                means = {key: fmean(row[key] for row in rows) for key in list(rows[0])[3:]}
                means["largest difference"] = max(row["largest difference"] for row in rows)
                title = f"{name}, {way}, {when}{', consolidated' if consolidated else ''}"
                print(f"{title:64} " + " ".join(f"{value:8.4g}" for value in means.values()), flush=True)
            if options.out:
                made_by = facts(commit=options.commit)
                append(options.out, [made_by | {"table": name, "way": way} | row for row in found])


def split_mnist() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the training stream, two digits after two, and the test set."""
    dataset = load_dataset("mnist")
    generator = torch.Generator().manual_seed(0)
    train, test = dataset.train, dataset.test
    order = torch.randperm(len(train.y), generator=generator)
    order = torch.cat([order[train.y[order] // 2 == task] for task in range(5)])
    return train.x[order].float() / 255, train.y[order], test.x.float() / 255, test.y


def learned(learner: CNDPM, x: Tensor, y: Tensor) -> CNDPM:
    """Learns a stream in batches of ten."""
    learner.learn_block(x, y, 10)
    return learner


def finished(learner: CNDPM) -> CNDPM:
    """Sleeps on what is left, as at the end of a stream."""
    learner.consolidate()
    learner.finish()
    return learner


def accuracy(learner: CNDPM, x: Tensor, y: Tensor) -> float:
    """Returns the share of right answers, in per cent."""
    return 100 * float((learner.predict_log_proba(x).argmax(dim=1) == y).double().mean())


def sums(learner: CNDPM) -> tuple[Tensor, Tensor, Tensor]:
    """Returns what experts with one covariance are: samples (C,) and features (C, d) by label, and scatter (d, d)."""
    assert isinstance(learner.bank, GaussianBank)
    gaussians, labels = learner.bank.ready(), torch.from_numpy(learner.bank.labels.labels)
    assert isinstance(gaussians, SharedGaussians)
    statistics, n_classes = gaussians.statistics, learner.bank.labels.n_classes
    counts = torch.zeros(n_classes, dtype=torch.float64).index_add(0, labels, gaussians.counts)
    features = statistics.sums.cpu() + gaussians.counts[:, None] * statistics.origin.cpu()
    by_label = features.new_zeros(n_classes, features.shape[1]).index_add(0, labels, features)
    return counts, by_label, statistics.within_scatter().tril().cpu()


def second_moment(learner: CNDPM) -> Tensor:
    """Returns the sum of z z' over all samples, less the origin, whichever experts have them; lower half, (d, d)."""
    assert isinstance(learner.bank, GaussianBank)
    gaussians = learner.bank.ready()
    assert isinstance(gaussians, SharedGaussians)
    statistics, counts = gaussians.statistics, gaussians.counts.clamp_min(1e-300)
    scaled = statistics.sums.cpu() / counts.sqrt()[:, None]
    return (statistics.within_scatter().cpu() + scaled.T @ scaled).tril()


def differences(a: CNDPM, b: CNDPM) -> str:
    """Compares sums of both models, label by label, relative to their size."""
    parts = [sums(learner) for learner in (a, b)]
    worst = [float((mine - theirs).abs().max() / mine.abs().max()) for mine, theirs in zip(*parts, strict=True)]
    return "counts by label {:.1e}, sums by label {:.1e}, scatter {:.1e}".format(*worst)


def compare_images() -> None:
    """Prints every comparison of images."""
    x, y, x_test, y_test = split_mnist()
    new = CNDPM(CNDPMSettings(), input_shape=(1, 28, 28))
    started = time.perf_counter()
    single = learned(new, x, y)
    print(f"single pass: {time.perf_counter() - started:.1f} s", flush=True)
    bounds = [len(x) * i // _N_SHARDS // 10 * 10 for i in range(_N_SHARDS)] + [len(x)]
    shards: list[CNDPM] = []
    for start, stop in pairwise(bounds):
        began = with_same_representation(shards[0]) if shards else blank(new)
        shards.append(learned(began, x[start:stop], y[start:stop]))
        print("shard:", [round(n) for n in shards[-1].counts.tolist()], "and", len(shards[-1].memory), "in the memory")
    started = time.perf_counter()
    merged = merge(shards)
    seconds = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        sizes = []
        for learner in (*shards, merged):
            save_state(f"{folder}/model", learner.state_dict(), kind="benchmark")
            sizes.append(Path(f"{folder}/model").stat().st_size / 2**20)
    print(f"merging: {seconds:.2f} s; files of {sizes[0]:.1f} MiB a shard and {sizes[-1]:.1f} MiB merged")
    pairs = merge([merge([shards[3], shards[1]]), merge([shards[2], shards[0]])])
    for learner in (single, merged, pairs):
        finished(learner)
        print(f"samples by expert: {learner.counts.tolist()}, accuracy {accuracy(learner, x_test, y_test):.2f} %")
    print("merged against a single pass:", differences(single, merged))
    print("merged by pairs in another order against at once:", differences(merged, pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("images", "rows"), default="images")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of rows, splits and models")
    add_options(parser)
    options = parser.parse_args()
    if options.what == "rows":
        compare_rows(options)
    else:
        compare_images()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
